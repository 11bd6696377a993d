// Tests of the codecs of structs and enums, and of a user's codec.
#include "weir/json/detail/codec_object.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json {

struct Head {
  std::string content_type;
  int größe = 0;
  bool class_ = false;
  int trailing__ = 0;
};
enum class Color { red, green, blue };
enum class Level : std::uint8_t { low = 1, high = 200 };
enum Old { old_a, old_b };
enum class Id : std::int64_t {};
struct Paint {
  Color color = Color::red;
  Level level = Level::low;
  Old old = old_a;
  bool operator==(const Paint&) const = default;
};
/// A type with its own codec, which writes it as text.
struct Day {
  int year = 0;
  int month = 0;
};
struct Trip {
  Day first;
  std::vector<Day> others;
};

template <>
inline constexpr std::array renames<Head>{Rename{"content_type", "content-type"}};
template <>
inline constexpr std::array enumerators<Color>{Named{Color::red, "red"},
                                               Named{Color::blue, "blue"}};
/// Enums whose underlying types are no numbers in JSON.
enum class Sign : char { plus = '+', minus = '-' };
enum class Switch : bool { off, on };
template <>
inline constexpr std::array enumerators<Sign>{Named{Sign::plus, "plus"}};
template <>
inline constexpr std::array enumerators<Switch>{Named{Switch::on, "on"}};
template <>
struct Codec<Day> {
  static bool read(Reader& in, Day& value) {
    std::string text;
    if (!in.read(text)) return false;
    if (text.size() != 7 || text[4] != '-') return in.fail_text("expected a month such as 2024-11");
    value.year = std::stoi(text.substr(0, 4));
    value.month = std::stoi(text.substr(5));
    return true;
  }
  static void write(Writer& out, const Day& value) {
    out.write(std::string_view(std::to_string(value.year) + "-" + std::to_string(value.month)));
  }
};

namespace {

struct Empty {};
struct Inner {
  int a;
  int b;
};
struct Most {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32;
};
struct TooMany {
  Most most;
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32;
};
struct Mixed {
  Inner inner;
  std::array<Inner, 3> array;
  std::vector<int> vector;
  std::optional<Inner> optional;
  std::unique_ptr<Inner> pointer;
  std::string text;
  double number;
  Empty empty;
};
struct WithArray {
  int before;
  char text[4];
  int after;
};
struct Derived : Inner {
  int c;
};

static_assert(detail::field_count<Empty> == 0);
static_assert(detail::field_count<Inner> == 2);
static_assert(detail::field_count<Most> == 32);
static_assert(detail::field_count<TooMany> == 33);
static_assert(detail::field_count<Mixed> == 8);
static_assert(detail::initialisers_are_fields<Mixed>());
static_assert(!detail::initialisers_are_fields<WithArray>());
static_assert(detail::has_base<Derived> && !detail::has_base<Mixed> && !detail::has_base<Empty>);
static_assert(detail::names<Mixed>[7] == "empty" && detail::names<Most>[31] == "f32");
static_assert(detail::field_table<Mixed>.required == 0b11100111);

TEST(Structs, FieldsKeepTheirNames) {
  EXPECT_EQ(write(Head{"text", 3, true, 4}),
            R"({"content-type":"text","größe":3,"class":true,"trailing_":4})");
  const auto head =
      read<Head>(R"({"trailing_":4,"class":true,"gr\u00f6\u00dfe":3,"content-type":"text"})");
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_EQ(head->content_type, "text");
  EXPECT_EQ(head->größe, 3);
  EXPECT_TRUE(head->class_);
  EXPECT_FALSE(read<Head>(R"({"content_type":"text","größe":3,"class":true,"trailing_":4})"));
}

TEST(Structs, LocalStructsAreReadAndWritten) {
  struct Local {
    int here;
    std::string there;
  };
  EXPECT_EQ(write(Local{1, "x"}), R"({"here":1,"there":"x"})");
  const auto local = read<Local>(R"({"here":1,"there":"x"})");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->there, "x");
}

TEST(Structs, HaveAtMost32Fields) {
  Most most{};
  most.f1 = 1;
  most.f32 = 32;
  const std::string text = write(most);
  const auto back = read<Most>(text);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->f1, 1);
  EXPECT_EQ(back->f32, 32);
  EXPECT_EQ(write(*back), text);
  const auto short_of_one = read<Most>(text.substr(0, text.rfind(',')) + "}");
  ASSERT_FALSE(short_of_one);
  EXPECT_EQ(short_of_one.error().path, "f32");
}

TEST(Structs, FieldsMayHaveEveryShape) {
  Mixed mixed{{1, 2}, {{{3, 4}, {5, 6}, {7, 8}}}, {9}, Inner{10, 11}, nullptr, "t", 0.5, {}};
  const std::string text =
      R"({"inner":{"a":1,"b":2},"array":[{"a":3,"b":4},{"a":5,"b":6},{"a":7,"b":8}],"vector":[9],)"
      R"("optional":{"a":10,"b":11},"text":"t","number":0.5,"empty":{}})";
  EXPECT_EQ(write(mixed), text);
  const auto back = read<Mixed>(text);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(write(*back), text);
}

TEST(Structs, LeaveOutEmptyFields) {
  struct Options {
    std::optional<int> a;
    std::optional<int> b;
    std::unique_ptr<int> c;
  };
  EXPECT_EQ(write(Options{}), "{}");
  EXPECT_EQ(write(Options{std::nullopt, 2, nullptr}), R"({"b":2})");
  EXPECT_EQ(write(Options{1, std::nullopt, std::make_unique<int>(3)}), R"({"a":1,"c":3})");
  const auto read_back = read<Options>(R"({"c":3,"a":null})");
  ASSERT_TRUE(read_back);
  EXPECT_EQ(*read_back->c, 3);
  EXPECT_FALSE(read_back->a);
  EXPECT_EQ(write(std::vector<std::optional<int>>{1, std::nullopt}), "[1,null]");
}

TEST(Enums, AreIntegersUnlessTheyHaveNames) {
  EXPECT_EQ(write(Paint{Color::blue, Level::high, old_b}),
            R"({"color":"blue","level":200,"old":1})");
  EXPECT_EQ(read<Paint>(R"({"color":"blue","level":200,"old":1})"),
            (Paint{Color::blue, Level::high, old_b}));
  EXPECT_EQ(write(Color::green), "1");  // it has no name
  EXPECT_EQ(read<Paint>(R"({"color":"green","level":200,"old":1})").error().message(),
            R"(color: expected "red" or "blue", found a different string (at byte 9))");
  EXPECT_EQ(read<Color>("1").error().what, "expected a string, found a number");
  // An enum without names is an opaque integer: it need not have enumerators.
  EXPECT_EQ(read<Id>("-9223372036854775808"), Id{std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(read<Level>("7"), Level{7});
  EXPECT_EQ(write(Id{42}), "42");
  EXPECT_EQ(read<Level>("256").error().what,
            "expected an integer from 0 to 255, found a number out of range");
}

TEST(Enums, OfEveryUnderlyingTypeAreIntegersWithoutAName) {
  EXPECT_EQ(write(Sign::plus), "\"plus\"");
  EXPECT_EQ(write(Sign::minus), "45");
  EXPECT_EQ(write(Switch::on), "\"on\"");
  EXPECT_EQ(write(Switch::off), "0");
  EXPECT_EQ(read<Sign>("\"plus\""), Sign::plus);
  EXPECT_EQ(read<Switch>("\"on\""), Switch::on);
  EXPECT_EQ(read<Switch>("\"off\"").error().what, R"(expected "on", found a different string)");
}

// A codec may call next_field() also if next_separator() has taken the brace.
TEST(Codecs, FindNoFieldBehindTheEndOfTheObject) {
  constexpr std::array<std::string_view, 2> names{"a", "b"};
  const FieldTable table{names, 1};
  constexpr std::array<char, 4> token{'"', 'a', '"', ':'};
  Reader in(R"({"a":1} )", ReadOptions());
  FieldCursor cursor;
  int value = 0;
  ASSERT_TRUE(in.open_object() && in.take(token) && in.read(value));
  cursor.seen = 1;
  in.next_separator(cursor);
  EXPECT_FALSE(in.next_field(table, cursor));
  EXPECT_TRUE(in.ok()) << in.error().what;
  EXPECT_FALSE(in.next_field(table, cursor)) << "it stays at the end";
  EXPECT_TRUE(in.finish_fields(table, cursor));
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(value, 1);
}

TEST(Codecs, MayBeDefinedByTheUser) {
  EXPECT_EQ(write(Trip{{2024, 11}, {{2025, 12}}}), R"({"first":"2024-11","others":["2025-12"]})");
  const auto trip = read<Trip>(R"({"first":"2024-11","others":["2025-12"]})");
  ASSERT_TRUE(trip);
  EXPECT_EQ(trip->others[0].year, 2025);
  EXPECT_EQ(read<Trip>(R"({"first":"2024-11","others":["2025-12","2026"]})").error().message(),
            "others[1]: expected a month such as 2024-11 (at byte 39)");
}

}  // namespace
}  // namespace weir::json
