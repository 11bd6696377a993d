// Tests of json::read() and read_into(): structs, errors, options and limits.
#include "weir/json/read.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/write.hpp"

namespace weir::json {
namespace {

struct Ping {
  int sequence;
  bool operator==(const Ping&) const = default;
};
struct Address {
  std::string street;
  int zip = 7;
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
}

TEST(Read, MissingFieldsAreRefusedUnlessKept) {
  EXPECT_EQ(error_of<Address>("{}"), "street: missing (at byte 1)");
  EXPECT_EQ(error_of<Users>(R"({"users":[{"name":"a","addresses":[{"street":"s"}]}]})"),
            "users[0].addresses[0].zip: missing (at byte 48)");
  EXPECT_EQ(read<Address>(R"({"street":"s"})", {.missing_fields = MissingFields::keep}),
            (Address{"s", 7}));
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

}  // namespace
}  // namespace weir::json
