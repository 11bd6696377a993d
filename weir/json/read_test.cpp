// Tests of json::read() and read_into(): structs, errors, options and limits.
#include "weir/json/read.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "weir/json/checked.hpp"
#include "weir/json/test/json_fixture.hpp"
#include "weir/json/write.hpp"

namespace weir::json::read_test {
namespace {

enum class Color : std::uint8_t { red, green };
struct Ping {
  int sequence;
  bool operator==(const Ping&) const = default;
};
struct Address {
  std::string street;
  int zip;
  bool operator==(const Address&) const = default;
};
struct User {
  std::string name;
  std::optional<int> age;
  std::vector<Address> addresses;
  bool operator==(const User&) const = default;
};
struct Users {
  std::vector<User> users;
  std::map<std::string, Ping> pings;
};
struct Nothing {
  bool operator==(const Nothing&) const = default;
};
struct Tree {
  int value = 0;
  std::vector<Tree> children;
  std::unique_ptr<Tree> next;
};

/// Returns the message of the error of reading `text`.
template <class T>
std::string error_of(std::string_view text, const ReadOptions& options = {}) {
  const auto result = read<T>(text, options);
  return result ? "it was read" : result.error().message();
}

/// Returns the pointer of the only error.
template <class T>
std::string pointer_of(std::string_view text) {
  const auto result = read<T>(text);
  return result ? "it was read" : result.error().pointer;
}

TEST(Read, NamesAnErrorByAJsonPointer) {
  using Map = std::map<std::string, Ping>;
  EXPECT_EQ(pointer_of<int>("x"), "");
  EXPECT_EQ(pointer_of<Users>(R"({"users":[{"name":"a","addresses":[{"street":1}]}]})"),
            "/users/0/addresses/0/street");
  EXPECT_EQ(pointer_of<Map>(R"({"a/b~c \"d":{}})"), "/a~1b~0c \"d/sequence");
  EXPECT_EQ(pointer_of<Map>(R"({"":{"sequence":true}})"), "//sequence");
  EXPECT_EQ(pointer_of<Map>(R"({"größe.[1]\n":{}})"), "/größe.[1]\n/sequence");
  const std::string name(200, 'n');
  EXPECT_EQ(pointer_of<Map>("{\"" + name + "\":{}}"), "/" + name + "/sequence") << "not cut";
}

TEST(Read, CutsALongPointerToAnEnclosingValue) {
  using Map = std::map<std::string, std::map<std::string, Ping>>;
  const std::string name(600, '/');
  EXPECT_EQ(pointer_of<Map>("{\"outer\":{\"" + name + "\":{}}}"), "/outer");
  EXPECT_EQ(pointer_of<Map>("{\"" + name + "\":{\"inner\":{}}}"), "");
}

TEST(Read, KeepsTheErrorsOfAMalformedText) {
  Tree tree;
  const std::string deep = R"({"value":"a","children":[{"value":"b","children":[{"value":x}]}]})";
  const std::vector<Error> errors = read_all_errors(tree, deep, {.errors_max = 8});
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].pointer, "/value");
  EXPECT_EQ(errors[1].pointer, "/children/0/value");
  EXPECT_EQ(errors[2].pointer, "/children/0/children/0/value");
}

TEST(Read, ReadsAStruct) {
  EXPECT_EQ(read<Ping>(R"({"sequence":2})"), Ping{2});
  EXPECT_EQ(read<Ping>("\r\n\t {\n \"sequence\" \t:\r 2 }\n"), Ping{2});
  EXPECT_EQ(read<Ping>("{\"\\u0073equ\\u0065nce\":2}"), Ping{2});
  EXPECT_EQ(read<Nothing>("{}"), Nothing());
  EXPECT_EQ(read<Nothing>(" { } "), Nothing());
}

TEST(Read, FieldsMayHaveAnyOrder) {
  const User expected{"Ann", 30, {{"Main St", 1}, {"Side St", 2}}};
  EXPECT_EQ(read<User>(R"({"name":"Ann","age":30,"addresses":[{"street":"Main St","zip":1},)"
                       R"({"street":"Side St","zip":2}]})"),
            expected);
  EXPECT_EQ(read<User>(R"({"addresses":[{"zip":1,"street":"Main St"},)"
                       R"({"street" : "Side St", "zip" : 2}], "age": 30, "name":"Ann"})"),
            expected);
  EXPECT_EQ(read<User>(R"({"age":30,"addresses":[{"zip":1,"street":"Main St"},)"
                       R"({"street" : "Side St", "zip" : 2}],"name":"Ann"})"),
            expected);
}

TEST(Read, OptionalsMayBeMissingOrNull) {
  EXPECT_EQ(read<User>(R"({"name":"Ann","addresses":[]})"), (User{"Ann", std::nullopt, {}}));
  EXPECT_EQ(read<User>(R"({"name":"Ann","age":null,"addresses":[]})"),
            (User{"Ann", std::nullopt, {}}));
}

TEST(Read, TypesMayContainThemselves) {
  const auto tree = read<Tree>(
      R"({"value":1,"children":[{"value":2,"children":[]}],"next":{"value":3,"children":[]}})");
  ASSERT_TRUE(tree) << tree.error().message();
  ASSERT_EQ(tree->children.size(), 1u);
  EXPECT_EQ(tree->children[0].value, 2);
  ASSERT_NE(tree->next, nullptr);
  EXPECT_EQ(tree->next->value, 3);
  EXPECT_EQ(tree->next->next, nullptr);
}

TEST(Read, ErrorsNameThePathOfTheValue) {
  EXPECT_EQ(error_of<Users>(R"({"users":[{"name":"a","addresses":[]},)"
                            R"({"name":"b","addresses":[{"street":"s","zip":"12"}]}]})"),
            "users[1].addresses[0].zip: expected an integer, found a string (at byte 83)");
  EXPECT_EQ(error_of<Users>(R"({"users":[],"pings":{"one":{"sequence":null}}})"),
            "pings.one.sequence: expected an integer, found null (at byte 39)");
  EXPECT_EQ(error_of<Users>(R"({"users":[],"pings":{"a b\"c\n":[]}})"),
            R"(pings["a b\"c?"]: expected an object, found an array (at byte 32))");
  EXPECT_EQ(error_of<Tree>(R"({"value":0,"children":[],"next":{"value":true}})"),
            "next.value: expected an integer, found true (at byte 41)");
}

TEST(Read, UnknownFieldsAreRefusedUnlessSkipped) {
  const std::string_view text =
      R"({"street":"s","more":[{"deep":[1,2.5e3,"x\n",{}]},[],false,null],"zip":1,"":0})";
  EXPECT_EQ(error_of<Address>(text), "more: unknown field (at byte 14)");
  EXPECT_EQ(error_of<Users>(R"({"users":[{"naem":"a"}]})"),
            "users[0].naem: unknown field (at byte 11)");
  const ReadOptions lenient{.unknown_fields = UnknownFields::skip};
  EXPECT_EQ(read<Address>(text, lenient), (Address{"s", 1}));
  EXPECT_EQ(error_of<Address>(R"({"street":"s","more":[1,{"x":tru}],"zip":1})", lenient),
            "more: expected true or false, found 't' (at byte 29)");
  EXPECT_EQ(error_of<Address>(R"({"street":"s","more":{"x" 1},"zip":1})", lenient),
            "more: expected ':', found a number (at byte 26)");
  EXPECT_EQ(error_of<Address>(R"({"street":"s","more":nul,"zip":1})", lenient),
            "more: expected a value, found 'n' (at byte 21)");
  EXPECT_EQ(error_of<Address>(R"({"street":"s","more":?,"zip":1})", lenient),
            "more: expected a value, found '?' (at byte 21)");
}

TEST(Read, MissingFieldsAreRefusedUnlessKept) {
  EXPECT_EQ(error_of<Address>("{}"), "street: missing (at byte 1)");
  EXPECT_EQ(error_of<Users>(R"({"users":[{"name":"a","addresses":[{"street":"s"}]}]})"),
            "users[0].addresses[0].zip: missing (at byte 48)");
  EXPECT_EQ(read<Address>(R"({"street":"s"})", {.missing_fields = MissingFields::keep}),
            (Address{"s", 0}));
}

struct Size {
  int columns = 80;
  int rows;
  bool operator==(const Size&) const = default;
};
struct Defaults {
  int one = 1;
  bool on = true;
  std::string text = "text";
  Color color = Color::green;
  std::vector<Nothing> list{Nothing()};
  std::array<int, 2> array{0, 2};
  std::tuple<int, std::string> tuple{0, "x"};
  Size size{80, 25};
  Checked<int, rule::Range<1, 5>> stars = 3;
  Checked<std::vector<Tree>, rule::Length<1, 2>> trees = std::vector<Tree>(1);
  std::chrono::seconds timeout{30};
};

TEST(Read, AFieldWithADefaultOtherThanZeroMayBeMissing) {
  const auto all = read<Defaults>("{}");
  ASSERT_TRUE(all.has_value()) << all.error().message();
  EXPECT_EQ(all->one, 1);
  EXPECT_TRUE(all->on);
  EXPECT_EQ(all->text, "text");
  EXPECT_EQ(all->color, Color::green);
  EXPECT_EQ(all->list.size(), 1U);
  EXPECT_EQ(all->array, (std::array{0, 2}));
  EXPECT_EQ(all->size, (Size{80, 25}));
  EXPECT_EQ(*all->stars, 3);
  EXPECT_EQ(all->trees->size(), 1U);
  EXPECT_EQ(all->timeout, std::chrono::seconds(30));
  EXPECT_EQ(read<Size>(R"({"rows":1})"), (Size{80, 1}));
  EXPECT_EQ(read<Size>(R"({"columns":0,"rows":1})"), (Size{0, 1}));
  EXPECT_EQ(error_of<Size>(R"({"columns":2})"), "rows: missing (at byte 12)");
  EXPECT_EQ(error_of<Defaults>(R"({"one":null})"),
            "one: expected an integer, found null (at byte 7)");
  Defaults used;
  used.one = 9;
  used.text = "old";
  used.list.clear();
  ASSERT_TRUE(read_into(used, R"({"on":false})"));
  EXPECT_EQ(used.one, 1) << "nothing of the old value is left";
  EXPECT_EQ(used.text, "text");
  EXPECT_EQ(used.list.size(), 1U);
  EXPECT_FALSE(used.on);
  used.one = 9;
  ASSERT_TRUE(read_into(used, "{}", {.missing_fields = MissingFields::keep}));
  EXPECT_EQ(used.one, 9);
}

struct Zeros {
  int number = 0;
  bool flag = false;
  std::string text = "";
  std::vector<int> list = {};
  std::array<int, 2> array{};
  std::tuple<int> tuple{};
  std::variant<int, bool> variant = 3;
  Ping ping = {0};
  Nothing nothing = {};
  Color color = Color::red;
  double real = -0.0;
};

TEST(Read, AZeroIsNoDefault) {
  Zeros zeros;
  const std::vector<Error> errors = read_all_errors(zeros, "{}", {.errors_max = 20});
  ASSERT_EQ(errors.size(), 11U);
  for (const Error& each : errors) EXPECT_EQ(each.what, "missing");
}

TEST(Read, AFieldWithADefaultIsNotNeededToChooseAStruct) {
  struct First {
    int id;
    int level = 1;
  };
  struct Second {
    int id;
    std::optional<int> level;
    int rank;
  };
  using Either = std::variant<Second, First>;
  const auto first = read<Either>(R"({"id":1})");
  ASSERT_TRUE(first.has_value()) << first.error().message();
  EXPECT_EQ(std::get<First>(*first).level, 1);
}

TEST(Read, DoubledFieldsAreRefused) {
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1,"sequence":2})"), "sequence: given twice (at byte 14)");
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1, "\u0073equence":2})"),
            "sequence: given twice (at byte 15)");
  EXPECT_EQ(error_of<Users>(R"({"users":[],"pings":{"a":{"sequence":1},"a":{"sequence":1}}})"),
            "pings.a: given twice (at byte 40)");
}

TEST(Read, TextAfterTheValueIsAnError) {
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1} x)"), "expected nothing more, found 'x' (at byte 15)");
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1}{"sequence":1})"),
            "expected nothing more, found an object (at byte 14)");
  EXPECT_EQ(error_of<int>(std::string_view("1\0", 2)),
            "expected nothing more, found the byte 0x00 (at byte 1)");
}

TEST(Read, EveryTruncationIsAnError) {
  const std::string text =
      R"({"name":"A\u00e4n","age":30,"addresses":[{"street":"Main St","zip":1},)"
      R"({"street":"","zip":2}]})";
  ASSERT_TRUE(read<User>(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string part = text.substr(0, size);
    const auto result = read<User>(part);
    ASSERT_FALSE(result) << part;
    EXPECT_LE(result.error().offset, size);
  }
}

TEST(Read, EveryWrongByteIsAnErrorOrAnotherValue) {
  const std::string text = R"({"name":"Ann","age":30,"addresses":[{"street":"St","zip":1}]})";
  const auto right = read<User>(text);
  for (std::size_t index = 0; index < text.size(); ++index) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string other = text;
      if (other[index] == static_cast<char>(byte)) continue;
      other[index] = static_cast<char>(byte);
      const auto result = read<User>(other);
      // A wrong byte leads to another value only inside a string or number.
      ASSERT_TRUE(!result || *result != *right) << other;
    }
  }
}

TEST(Read, CommasAndBracesMustBeRight) {
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1,})"), "a trailing comma (at byte 14)");
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1 , })"), "a trailing comma (at byte 16)");
  EXPECT_EQ(error_of<Ping>(R"({,"sequence":1})"),
            "expected a name in quotes, found ',' (at byte 1)");
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1])"), "expected ',' or '}', found ']' (at byte 13)");
  EXPECT_EQ(error_of<Ping>(R"({sequence:1})"), "expected a name in quotes, found 's' (at byte 1)");
  EXPECT_EQ(error_of<Ping>(R"({"sequence" 1})"), "expected ':', found a number (at byte 12)");
  EXPECT_EQ(error_of<Ping>(R"({'sequence':1})"),
            "expected a name in quotes, found ''' (at byte 1)");
  EXPECT_EQ(error_of<Ping>(""), "expected an object, found the end of the text (at byte 0)");
  EXPECT_EQ(error_of<Ping>("null"), "expected an object, found null (at byte 0)");
  EXPECT_EQ(error_of<Ping>("\xEF\xBB\xBF{}"), "a byte order mark (at byte 0)");
}

TEST(Read, DepthIsLimited) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t level = 0; level < depth; ++level) text += R"({"value":0,"children":[)";
    for (std::size_t level = 0; level < depth; ++level) text += "]}";
    return text;
  };
  EXPECT_TRUE(read<Tree>(nested(32)));
  const auto deep = read<Tree>(nested(33));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().what, "nested too deeply");
  EXPECT_EQ(deep.error().code, Errc::limit_reached);
  EXPECT_TRUE(read<Tree>(nested(33), {.depth_max = 66}));
  // The stack stays safe for every depth_max.
  EXPECT_EQ(read<Tree>(nested(100'000), {.depth_max = 1'000'000}).error().what,
            "nested too deeply");
  const std::string skipped = R"({"sequence":1,"x":)" + std::string(1'000'000, '[');
  const ReadOptions lenient{.unknown_fields = UnknownFields::skip, .depth_max = 1'000'000};
  EXPECT_EQ(error_of<Ping>(skipped, lenient), "x: nested too deeply (at byte 1017)");
}

TEST(Read, LengthIsLimited) {
  EXPECT_EQ(error_of<Ping>(R"({"sequence":1})", {.text_bytes_max = 13}),
            "a text that is too long (at byte 0)");
  EXPECT_TRUE(read<Ping>(R"({"sequence":1})", {.text_bytes_max = 14}));
}

struct Large {
  std::optional<std::array<std::uint64_t, 128>> numbers;
};

TEST(Read, ShortTextsDoNotUseMuchMemory) {
  const ReadOptions options{.element_bytes_max = 10 * sizeof(Large)};
  EXPECT_TRUE(read<std::vector<Large>>("[{},{},{},{},{},{},{},{},{},{}]", options));
  const auto result = read<std::vector<Large>>("[{},{},{},{},{},{},{},{},{},{},{}]", options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "[10]: too many elements (at byte 31)");
  EXPECT_EQ(result.error().code, Errc::limit_reached);
}

TEST(Read, ReadIntoReplacesTheOldValue) {
  User user{"a name that is too long for the string itself", 1, {{"s", 1}}};
  const char* const memory = user.name.data();
  ASSERT_TRUE(read_into(user, R"({"addresses":[],"name":"another one"})"));
  EXPECT_EQ(user, (User{"another one", std::nullopt, {}}));
  EXPECT_EQ(user.name.data(), memory);
  const auto result = read_into(user, "[]");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "expected an object, found an array");
}

struct Message {
  std::optional<std::string> token;
  std::unique_ptr<Ping> ping;
  std::optional<Address> address;
  int number = 0;
  std::optional<int> last = 5;
};

TEST(Read, ReadIntoKeepsNothingOfTheOldValue) {
  // The fields are in order, out of order, partly skipped, or missing before the end.
  for (const std::string_view text :
       {R"({"number":2})", R"( { "number" : 2 } )", R"({"ping":null,"number":2})",
        R"({"number":2,"token":null})", R"({"x":1,"number":2})"}) {
    Message message{"secret", std::make_unique<Ping>(1), Address{"s", 1}, 1, 1};
    ASSERT_TRUE(read_into(message, text, {.unknown_fields = UnknownFields::skip})) << text;
    EXPECT_EQ(message.token, std::nullopt) << text;
    EXPECT_EQ(message.ping, nullptr) << text;
    EXPECT_EQ(message.address, std::nullopt) << text;
    EXPECT_EQ(message.number, 2) << text;
    EXPECT_EQ(message.last, std::nullopt) << text;
  }
}

TEST(Read, ReadIntoKeepsNothingOfOldNestedValues) {
  struct Outer {
    Message inner;
    std::array<Message, 1> array;
  };
  Outer outer;
  ASSERT_TRUE(read_into(outer, R"({"inner":{"token":"secret","number":1},)"
                               R"("array":[{"token":"secret","number":1}]})"));
  ASSERT_EQ(outer.inner.token, "secret");
  ASSERT_EQ(outer.array[0].token, "secret");
  ASSERT_TRUE(read_into(outer, R"({"inner":{"number":2},"array":[{"number":2}]})"));
  EXPECT_EQ(outer.inner.token, std::nullopt);
  EXPECT_EQ(outer.array[0].token, std::nullopt);
}

TEST(Read, ReadIntoKeepsMissingFieldsOnRequest) {
  Message message{"token", std::make_unique<Ping>(1), Address{"s", 1}, 1, 1};
  const ReadOptions options{.missing_fields = MissingFields::keep};
  ASSERT_TRUE(read_into(message, R"({"address":null})", options));
  EXPECT_EQ(message.token, "token");
  ASSERT_NE(message.ping, nullptr);
  EXPECT_EQ(message.ping->sequence, 1);
  EXPECT_EQ(message.address, std::nullopt);
  EXPECT_EQ(message.number, 1);
  EXPECT_EQ(message.last, 1);
}

TEST(Read, MissingFieldsOfANewValueHaveTheirDefaults) {
  struct Holder {
    Address plain;
    std::optional<Address> optional;
    std::unique_ptr<Address> pointer;
    std::vector<Address> list;
    std::map<std::string, Address> map;
    std::variant<int, Address> variant;
    std::array<Address, 2> array;
    std::pair<int, Address> pair;
  };
  const Address old{"old", 1};
  Holder holder{old,
                old,
                std::make_unique<Address>(old),
                {old, old},
                {{"a", old}, {"b", old}},
                old,
                {old, old},
                {1, old}};
  const ReadOptions options{.missing_fields = MissingFields::keep};
  ASSERT_TRUE(read_into(holder,
                        R"({"plain":{},"optional":{},"pointer":{},"list":[{}],)"
                        R"("map":{"a":{}},"variant":{},"array":[{},{"zip":2}],"pair":[2,{}]})",
                        options));
  const Address fresh{"", 0};
  EXPECT_EQ(holder.plain, old);
  EXPECT_EQ(holder.optional, fresh);
  ASSERT_NE(holder.pointer, nullptr);
  EXPECT_EQ(*holder.pointer, fresh);
  EXPECT_EQ(holder.list, std::vector<Address>{fresh});
  EXPECT_EQ(holder.map, (std::map<std::string, Address>{{"a", fresh}}));
  EXPECT_EQ(holder.variant, (std::variant<int, Address>(fresh)));
  EXPECT_EQ(holder.array, (std::array<Address, 2>{old, Address{"old", 2}}));
  EXPECT_EQ(holder.pair, std::pair(2, old));
}

TEST(Read, NamesInSkippedValuesMayRepeat) {
  const ReadOptions lenient{.unknown_fields = UnknownFields::skip};
  EXPECT_EQ(read<Ping>(R"({"x":1,"x":{"sequence":2,"sequence":3},"sequence":4,"x":[]})", lenient),
            Ping{4});
  EXPECT_EQ(error_of<Ping>(R"({"x":1,"sequence":4,"x":2,"sequence":4})", lenient),
            "sequence: given twice (at byte 26)");
}

TEST(Read, ErrorsHaveThePositionOfTheirCause) {
  struct Row {
    std::string_view text;
    std::string_view integer;  // the error of a std::int8_t
    std::string_view real;     // the error of a double
  };
  const Row rows[] = {
      {" 01", "a number with a leading zero (at byte 1)",
       "a number with a leading zero (at byte 1)"},
      {" 1.", "expected an integer, found a fraction or an exponent (at byte 2)",
       "expected a digit, found the end of the text (at byte 3)"},
      {" 1.x", "expected an integer, found a fraction or an exponent (at byte 2)",
       "expected a digit, found 'x' (at byte 3)"},
      {" 12e", "expected an integer, found a fraction or an exponent (at byte 3)",
       "expected a digit, found the end of the text (at byte 4)"},
      {" 12e+x", "expected an integer, found a fraction or an exponent (at byte 3)",
       "expected a digit, found 'x' (at byte 5)"},
      {" -", "expected a digit, found the end of the text (at byte 2)",
       "expected a digit, found the end of the text (at byte 2)"},
      {" -x", "expected a digit, found 'x' (at byte 2)", "expected a digit, found 'x' (at byte 2)"},
      {" 1 2", "expected nothing more, found a number (at byte 3)",
       "expected nothing more, found a number (at byte 3)"},
      {" 1x", "expected nothing more, found 'x' (at byte 2)",
       "expected nothing more, found 'x' (at byte 2)"},
      {" x", "expected an integer, found 'x' (at byte 1)",
       "expected a number, found 'x' (at byte 1)"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(error_of<std::int8_t>(row.text), row.integer) << row.text;
    EXPECT_EQ(error_of<double>(row.text), row.real) << row.text;
  }
  EXPECT_EQ(error_of<std::int8_t>(" -129 "),
            "expected an integer from -128 to 127, found a number out of range (at byte 1)");
  EXPECT_EQ(error_of<std::uint8_t>(" -1 "),
            "expected an integer from 0 to 255, found a number out of range (at byte 1)");
  EXPECT_EQ(error_of<double>(" -1e999 "), "a number out of range (at byte 1)");
  EXPECT_EQ(error_of<std::string>(R"( "a\q")"), "an unknown escape (at byte 3)");
  EXPECT_EQ(error_of<std::string>(R"( "a\ud800b")"), "an unpaired surrogate (at byte 3)");
  EXPECT_EQ(error_of<std::string>(" \"a\n\""), "a control character in a string (at byte 3)");
  EXPECT_EQ(error_of<std::string>(" \"a\xff\""), "a string that is not UTF-8 (at byte 3)");
  EXPECT_EQ(error_of<bool>(" tru "), "expected true or false, found 't' (at byte 1)");
}

TEST(Read, AnEmptyOptionalStaysEmptyDespiteItsDefault) {
  Message message;
  message.last.reset();
  const auto back = read<Message>(write(message));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->last, std::nullopt);
}

TEST(Read, LongPathsStayShort) {
  std::string text;
  for (int level = 0; level < 200; ++level) text += R"({"value":0,"children":[)";
  const auto result = read<Tree>(text + "x", {.depth_max = 1000});
  ASSERT_FALSE(result);
  EXPECT_LE(result.error().path.size(), 600u);
  EXPECT_TRUE(result.error().path.ends_with("children[0].children[0]")) << result.error().path;
  EXPECT_TRUE(result.error().path.starts_with("...")) << result.error().path;
  const auto keyed = read<std::map<std::string, int>>("{\"" + std::string(100'000, 'k') + "\":x}");
  ASSERT_FALSE(keyed);
  EXPECT_EQ(keyed.error().path, "[\"" + std::string(64, 'k') + "...\"]");
}

TEST(ReadOptionsDefaults, AreThoseOfTheHeader) {
  const ReadOptions options;
  EXPECT_EQ(options.unknown_fields, UnknownFields::refuse);
  EXPECT_EQ(options.missing_fields, MissingFields::refuse);
  EXPECT_EQ(options.depth_max, 64U);
  EXPECT_EQ(options.text_bytes_max, 64U * 1024 * 1024);
  EXPECT_EQ(options.element_bytes_max, 64U * 1024 * 1024);
  const Error error;
  EXPECT_EQ(error.offset, 0U);
  EXPECT_EQ(error.code, Errc::bad_input);
}

TEST(Read, ErrorsHaveTheCodeOfTheirCause) {
  EXPECT_EQ(read<Ping>("{}", {.text_bytes_max = 1}).error().code, Errc::limit_reached);
  EXPECT_EQ(read<Ping>("{}", {.depth_max = 0}).error().code, Errc::limit_reached);
  EXPECT_EQ(read<Ping>("{}").error().code, Errc::bad_input);
  EXPECT_EQ(make_error_code(read<Ping>("{}").error()), Errc::bad_input);
  EXPECT_EQ(make_error_code(read<Ping>("{}", {.depth_max = 0}).error()), Errc::limit_reached);
}

TEST(Read, ReadIntoReadsAllOfTheText) {
  Ping ping{1};
  EXPECT_TRUE(read_into(ping, R"({"sequence":2})"));
  EXPECT_EQ(ping.sequence, 2);
  for (const std::string_view text : {R"({"sequence":3} x)", R"({"sequence":3},)", "{}", "",
                                      "\xEF\xBB\xBF{\"sequence\":3}", R"({"sequence":"3"})"}) {
    const auto result = read_into(ping, text);
    EXPECT_FALSE(result) << text;
    EXPECT_FALSE(result.error().what.empty()) << text;
  }
  EXPECT_FALSE(read_into(ping, R"({"sequence":3})", {.text_bytes_max = 13}));
}

TEST(Read, ReadIntoKeepsNoElementOfTheOldValue) {
  struct Lists {
    std::vector<int> sequence;
    std::vector<bool> bits;
    std::set<int> set;
    std::map<std::string, int> map;
    std::optional<std::vector<int>> optional;
  };
  Lists lists{{1, 2, 3}, {true, true}, {7, 8}, {{"old", 1}}, std::vector<int>{1}};
  ASSERT_TRUE(read_into(
      lists, R"({"sequence":[9],"bits":[false],"set":[8],"map":{"new":2},"optional":[5]})"));
  EXPECT_EQ(lists.sequence, std::vector<int>{9});
  EXPECT_EQ(lists.bits, std::vector<bool>{false});
  EXPECT_EQ(lists.set, std::set<int>{8});
  EXPECT_EQ(lists.map, (std::map<std::string, int>{{"new", 2}}));
  EXPECT_EQ(lists.optional, std::vector<int>{5});
  ASSERT_TRUE(read_into(lists, R"({"sequence":[],"bits":[],"set":[],"map":{},"optional":[]})"));
  EXPECT_TRUE(lists.sequence.empty() && lists.bits.empty() && lists.set.empty());
  EXPECT_TRUE(lists.map.empty());
  EXPECT_EQ(lists.optional, std::vector<int>());
}

/// Returns a text of `count` copies of `element` with commas between them, in brackets.
std::string list_of(std::size_t count, std::string_view element) {
  std::string text = "[";
  for (std::size_t number = 0; number < count; ++number) {
    if (number > 0) text += ',';
    text += element;
  }
  return text + "]";
}

/// Expects that ten elements of `bytes` each may be read with that limit, and not with one less.
template <class T>
void expect_charged(const std::string& text, std::size_t bytes) {
  EXPECT_TRUE(read<T>(text, {.element_bytes_max = 10 * bytes})) << text;
  const auto result = read<T>(text, {.element_bytes_max = 10 * bytes - 1});
  ASSERT_FALSE(result) << text;
  EXPECT_EQ(result.error().code, Errc::limit_reached) << text;
  EXPECT_EQ(result.error().what, "too many elements") << text;
}

TEST(Read, ElementsOfEveryContainerAreCharged) {
  const std::string numbers = "[0,1,2,3,4,5,6,7,8,9]";
  const std::string names = R"({"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9})";
  expect_charged<std::vector<std::int64_t>>(numbers, sizeof(std::int64_t));
  expect_charged<std::vector<bool>>(list_of(10, "true"), sizeof(bool));
  expect_charged<std::set<std::int32_t>>(numbers, sizeof(std::int32_t));
  expect_charged<std::map<std::string, int>>(names, sizeof(std::pair<const std::string, int>));
  expect_charged<std::map<int, Large>>(
      R"({"0":{},"1":{},"2":{},"3":{},"4":{},"5":{},"6":{},"7":{},"8":{},"9":{}})",
      sizeof(std::pair<const int, Large>));
  expect_charged<std::vector<std::unique_ptr<Large>>>(
      list_of(10, "{}"), sizeof(std::unique_ptr<Large>) + sizeof(Large));
  expect_charged<std::vector<std::unique_ptr<Large>>>(list_of(10, "null"),
                                                      sizeof(std::unique_ptr<Large>));
}

TEST(Read, ElementsOfAllContainersAreChargedTogether) {
  struct Lists {
    std::vector<std::int32_t> first;
    std::vector<std::vector<std::int32_t>> nested;
    std::set<std::int32_t> last;
  };
  const std::string_view text = R"({"first":[1,2],"nested":[[3],[4,5]],"last":[6,7]})";
  const std::size_t bytes = 7 * sizeof(std::int32_t) + 2 * sizeof(std::vector<std::int32_t>);
  EXPECT_TRUE(read<Lists>(text, {.element_bytes_max = bytes}));
  EXPECT_EQ(error_of<Lists>(text, {.element_bytes_max = bytes - 1}),
            "last[1]: too many elements (at byte 46)");
}

TEST(Read, DepthLimitIsExactForEveryKindOfValue) {
  using Nested = std::vector<std::map<std::string, std::array<std::tuple<Nothing>, 1>>>;
  const std::string text = R"([{"a":[[{}]]}])";  // five levels
  EXPECT_TRUE(read<Nested>(text, {.depth_max = 5}));
  EXPECT_EQ(error_of<Nested>(text, {.depth_max = 4}), "[0].a[0][0]: nested too deeply (at byte 8)");
  EXPECT_EQ(error_of<Nested>(text, {.depth_max = 0}), "nested too deeply (at byte 0)");
  // Values that are closed again do not count.
  EXPECT_TRUE(read<std::vector<std::vector<int>>>(list_of(200, "[1]"), {.depth_max = 2}));
  EXPECT_TRUE(read<std::vector<Ping>>(list_of(200, R"({"sequence":1})"), {.depth_max = 2}));
  EXPECT_TRUE(read<std::vector<Ping>>(list_of(200, R"({ "sequence" : 1 })"), {.depth_max = 2}));
  EXPECT_TRUE(read<std::vector<Nothing>>(list_of(200, R"({"x":[{}]})"),
                                         {.unknown_fields = UnknownFields::skip, .depth_max = 4}));
  EXPECT_FALSE(read<std::vector<Nothing>>(list_of(200, R"({"x":[{}]})"),
                                          {.unknown_fields = UnknownFields::skip, .depth_max = 3}));
}

/// Returns the path of an error behind this name of a map, which is written with \u escapes.
std::string path_behind(char character) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(character);
  const std::string escape = std::string("\\u00") + digits[code >> 4] + digits[code & 15U];
  return read<std::map<std::string, int>>("{\"" + escape + "\":x}").error().path;
}

TEST(Read, PathsQuoteNamesThatAreNoWords) {
  const std::string_view words = "abyzABYZ0189_-";
  for (int code = 0; code < 0x80; ++code) {
    const char character = static_cast<char>(code);
    const bool letter = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
    const bool word = letter || (code >= '0' && code <= '9') || code == '_' || code == '-';
    EXPECT_TRUE(word || !words.contains(character));
    const std::string shown = code < 0x20 || code == 0x7f ? "?" : std::string(1, character);
    const std::string escaped = (code == '"' || code == '\\') ? "\\" + shown : shown;
    EXPECT_EQ(path_behind(character), word ? shown : "[\"" + escaped + "\"]") << code;
  }
  EXPECT_EQ(path_behind('\xe4'), "[\"??\"]") << "two bytes of UTF-8";
  EXPECT_EQ((read<std::map<std::string, int>>(R"({"":x})").error().path), "[\"\"]");
}

TEST(Read, PathsShowAtMost64BytesOfAName) {
  for (const std::size_t size : {1U, 63U, 64U, 65U, 66U, 200U}) {
    const std::string name(size, 'k');
    const auto result = read<std::map<std::string, int>>("{\"" + name + "\":x}");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().path, size <= 64 ? name : "[\"" + std::string(64, 'k') + "...\"]");
  }
}

struct Deep {
  std::map<std::string, Deep> m;
};

TEST(Read, PathsHaveAtMost512Bytes) {
  // Each level adds ".m." and a name; the innermost part of the path is always there.
  using Map = std::map<std::string, std::map<std::string, std::map<std::string, int>>>;
  const std::string name(64, 'k');
  const std::string inner = "{\"" + name + "\":{\"" + name + "\":{\"" + name + "\":x}}}";
  EXPECT_EQ(read<Map>(inner).error().path, name + "." + name + "." + name);
  // Five levels of "m" and 64 bytes make 5 * 67 - 1 bytes; a sixth has a part of each size.
  for (const std::size_t size : {1U, 40U, 41U, 42U, 43U, 44U, 45U, 64U}) {
    std::string text = "x";
    std::string path;
    for (int level = 0; level < 7; ++level) {
      text = R"({"m":{")" + name + R"(":)" + text + "}}";
      path = "m." + name + (path.empty() ? "" : "." + path);
    }
    const std::string outer(size, 'o');
    text = "{\"" + outer + "\":" + text + "}";
    const auto result = read<std::map<std::string, Deep>>(text);
    ASSERT_FALSE(result);
    // The path of seven levels is 468 bytes long; a part counts with its dot.
    ASSERT_EQ(path.size(), 468U);
    EXPECT_EQ(result.error().path, 468 + size + 1 <= 512 ? outer + "." + path : "..." + path)
        << size;
  }
}

TEST(Read, CharactersThatBeginNoValueAreShown) {
  EXPECT_EQ(error_of<int>("!"), "expected an integer, found '!' (at byte 0)");
  EXPECT_EQ(error_of<int>("~"), "expected an integer, found '~' (at byte 0)");
  EXPECT_EQ(error_of<int>("\x7f"), "expected an integer, found the byte 0x7f (at byte 0)");
  EXPECT_EQ(error_of<int>("\x1f"), "expected an integer, found the byte 0x1f (at byte 0)");
  EXPECT_EQ(error_of<int>("\xfe"), "expected an integer, found the byte 0xfe (at byte 0)");
  EXPECT_EQ(error_of<int>("- 1"), "expected a digit, found the byte 0x20 (at byte 1)");
  EXPECT_EQ(error_of<int>("/"), "expected an integer, found '/' (at byte 0)");
  EXPECT_EQ(error_of<int>(":"), "expected an integer, found ':' (at byte 0)");
  EXPECT_EQ(error_of<std::string>("0"), "expected a string, found a number (at byte 0)");
  EXPECT_EQ(error_of<std::string>("9"), "expected a string, found a number (at byte 0)");
  EXPECT_EQ(error_of<std::string>("-"), "expected a string, found a number (at byte 0)");
  EXPECT_EQ(error_of<std::string>("true"), "expected a string, found true (at byte 0)");
  EXPECT_EQ(error_of<std::string>("false"), "expected a string, found false (at byte 0)");
  EXPECT_EQ(error_of<std::string>("null"), "expected a string, found null (at byte 0)");
  EXPECT_EQ(error_of<std::string>("[1]"), "expected a string, found an array (at byte 0)");
  EXPECT_EQ(error_of<std::string>("{}"), "expected a string, found an object (at byte 0)");
  EXPECT_EQ(error_of<bool>("\"t\""), "expected true or false, found a string (at byte 0)");
  EXPECT_EQ(error_of<std::nullptr_t>("nul"), "expected null, found 'n' (at byte 0)");
  EXPECT_EQ(error_of<std::nullptr_t>("1"), "expected null, found a number (at byte 0)");
}

// A struct is read by another way than a map; it must not accept more.
TEST(Read, StructsAcceptNoTextThatIsNoJson) {
  const std::string_view texts[] = {
      R"({"name":"A","age":3,"addresses":[{"street":"S","zip":1}]})",
      R"( { "name" : "A" , "addresses" : [ { "zip" : 1 , "street" : "S" } ] } )"};
  constexpr std::string_view bytes = "{}[]:,\"\\ \t\n\v\f0129.+-eEatnul\x80\x1f";
  for (const std::string_view text : texts) {
    ASSERT_TRUE(read<User>(text));
    for (std::size_t place = 0; place <= text.size(); ++place) {
      std::string shorter(text);
      if (place < text.size()) {
        shorter.erase(place, 1);
        ASSERT_TRUE(read_any(shorter) || !read<User>(shorter)) << shorter;
      }
      for (const char byte : bytes) {
        std::string longer(text);
        longer.insert(place, 1, byte);
        ASSERT_TRUE(read_any(longer) || !read<User>(longer)) << longer;
      }
    }
  }
}

}  // namespace
}  // namespace weir::json::read_test
