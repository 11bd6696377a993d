// Tests of the codec of variants.
#include "weir/json/detail/codec_variant.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json {

/// A type with its own codec, which writes it as text.
struct Ratio {
  int part = 0;
  int whole = 1;
  bool operator==(const Ratio&) const = default;
};
template <>
struct Codec<Ratio> {
  static constexpr Kinds kinds = kinds_of(Kind::text);
  static bool read(Reader& in, Ratio& value) {
    std::string text;
    if (!in.read(text)) return false;
    if (text.size() != 3 || text[1] != '/') return in.fail_text("expected a ratio such as 1/2");
    value = {text[0] - '0', text[2] - '0'};
    return true;
  }
  static void write(Writer& out, const Ratio& value) {
    out.write(std::string_view(std::to_string(value.part) + "/" + std::to_string(value.whole)));
  }
};

/// A type that may fail to be made.
struct Fragile {
  Fragile() = default;
  explicit Fragile(int) { throw std::runtime_error("cannot be made"); }
  std::string text;  // a variant keeps its old value only for trivial types
};
template <>
struct Codec<Fragile> {
  static constexpr Kinds kinds = kinds_of(Kind::null);
  static bool read(Reader& in, Fragile&) { return in.take_null() || in.fail_expected("null"); }
  static void write(Writer& out, const Fragile&) { out.put(std::string_view("null")); }
};

namespace {

struct Circle {
  double radius;
  std::optional<std::string> name;
  bool operator==(const Circle&) const = default;
};
struct Square {
  double side;
  std::optional<std::string> name;
  bool operator==(const Square&) const = default;
};
struct Point {
  std::optional<std::string> name;
  bool operator==(const Point&) const = default;
};
using Scalar = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
using Figure = std::variant<Circle, Square, Point>;

using Owned = std::variant<int, std::unique_ptr<Circle>, std::vector<bool>>;
using Rational = std::variant<int, Ratio, std::vector<int>>;

struct Leaf {
  int leaf;
};
struct Branch {
  std::vector<std::variant<Leaf, Branch>> branch;
};

template <class T>
void expect_both_ways(const T& value, std::string_view text) {
  EXPECT_EQ(write(value), text);
  const auto back = read<T>(text);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->index(), value.index());
  EXPECT_EQ(*back, value);
}
template <class T>
std::string error_of(std::string_view text, const ReadOptions& options = {}) {
  const auto result = read<T>(text, options);
  return result ? "it was read" : result.error().message();
}

TEST(Variants, AreSelectedByKind) {
  expect_both_ways(Scalar(), "null");
  expect_both_ways(Scalar(true), "true");
  expect_both_ways(Scalar(std::int64_t{-5}), "-5");
  expect_both_ways(Scalar(20.0), "20.0");
  expect_both_ways(Scalar(1e20), "1e+20");
  expect_both_ways(Scalar(std::string("x")), "\"x\"");
  expect_both_ways(std::variant<std::vector<int>, std::map<std::string, int>>(
                       std::map<std::string, int>{{"a", 1}}),
                   R"({"a":1})");
  EXPECT_EQ((read<std::variant<double, std::string>>("20")),
            (std::variant<double, std::string>(20.0)));
}

TEST(Variants, StructsAreSelectedByTheirFields) {
  expect_both_ways(Figure(Circle{1.5, {}}), R"({"radius":1.5})");
  expect_both_ways(Figure(Square{1.5, "s"}), R"({"side":1.5,"name":"s"})");
  expect_both_ways(Figure(Point{"p"}), R"({"name":"p"})");
  expect_both_ways(Figure(Point{}), "{}");
  EXPECT_EQ(read<Figure>(R"({"name":{"wrong":[]},"side":1})").error().path, "name");
  EXPECT_EQ(read<Figure>(R"( { "na\u006de" : "s" , "side" : 2 } )"), Figure(Square{2, "s"}));
}

TEST(Variants, ValuesThatFitNoAlternativeAreErrors) {
  EXPECT_EQ(error_of<Scalar>("[]"),
            "expected null, true or false, a number or a string, found an array (at byte 0)");
  EXPECT_EQ(error_of<Scalar>(""),
            "expected null, true or false, a number or a string, found the end of the text (at "
            "byte 0)");
  EXPECT_EQ(error_of<Figure>("1"), "expected an object, found a number (at byte 0)");
  EXPECT_EQ((error_of<std::vector<std::variant<std::vector<int>, Circle>>>("[[], null]")),
            "[1]: expected an array or an object, found null (at byte 5)");
  EXPECT_EQ(error_of<Rational>("true"),
            "expected a number, a string or an array, found true (at byte 0)");
  EXPECT_EQ(error_of<Scalar>("9223372036854775808"),
            "expected an integer from -9223372036854775808 to 9223372036854775807, found a number "
            "out of range "
            "(at byte 0)");
  EXPECT_EQ(error_of<std::vector<Figure>>(R"([{"radius":1,"side":1}])"),
            "[0].side: unknown field (at byte 13)");
  EXPECT_EQ(error_of<std::vector<Figure>>(R"([{"name":"x","height":1}])"),
            "[0].height: none of the alternatives has all these fields (at byte 13)");
  EXPECT_EQ(error_of<Figure>(R"({"side":"1"})"),
            "side: expected a number, found a string (at byte 8)");
  EXPECT_EQ(error_of<Figure>(R"({"name":tru})"),
            "name: expected true or false, found 't' (at byte 8)");
  EXPECT_EQ(error_of<Figure>(R"({"name":1,})"), "a trailing comma (at byte 10)");
}

TEST(Variants, MayHoldPointers) {
  const auto circle = read<Owned>(R"({"radius":2})");
  ASSERT_TRUE(circle) << circle.error().message();
  ASSERT_EQ(circle->index(), 1u);
  ASSERT_NE(std::get<1>(*circle), nullptr);
  EXPECT_EQ(*std::get<1>(*circle), (Circle{2, {}}));
  EXPECT_EQ(write(*circle), R"({"radius":2.0})");
  const auto null = read<Owned>("null");
  ASSERT_TRUE(null) << null.error().message();
  ASSERT_EQ(null->index(), 1u);
  EXPECT_EQ(std::get<1>(*null), nullptr);
  EXPECT_EQ(error_of<Owned>("true"),
            "expected null, a number, an array or an object, found true (at byte 0)");
}

TEST(Variants, MayHoldTypesWithTheirOwnCodec) {
  expect_both_ways(Rational(Ratio{1, 2}), "\"1/2\"");
  expect_both_ways(Rational(7), "7");
  EXPECT_EQ(error_of<Rational>("\"half\""), "expected a ratio such as 1/2 (at byte 0)");
}

TEST(Variants, WithViewsAreWritten) {
  EXPECT_EQ((write(std::variant<int, std::string_view>("text"))), "\"text\"");
}

TEST(Variants, SkipUnknownFieldsOnRequest) {
  const ReadOptions lenient{.unknown_fields = UnknownFields::skip};
  EXPECT_EQ(read<Figure>(R"({"x":[{}],"name":"s","y":1,"side":2})", lenient),
            Figure(Square{2, "s"}));
  EXPECT_EQ(read<Figure>(R"({"x":[{}]})", lenient), Figure(Point{}));
}

TEST(Variants, MayContainThemselves) {
  const std::string text = R"({"branch":[{"leaf":1},{"branch":[{"branch":[]},{"leaf":2}]}]})";
  const auto tree = read<Branch>(text);
  ASSERT_TRUE(tree) << tree.error().message();
  EXPECT_EQ(write(*tree), text);
  EXPECT_EQ(error_of<Branch>(R"({"branch":[{"leaf":1},{"branch":[{"leaf":"2"}]}]})"),
            "branch[1].branch[0].leaf: expected an integer, found a string (at byte 41)");
}

struct Both {
  int a;
  int b;
};
struct First {
  int a;
  std::optional<int> b;
  std::optional<int> c;
};
struct Other {
  std::optional<int> c;
  std::optional<int> d;
};
using Overlapping = std::variant<Both, First, Other>;

TEST(Variants, FirstStructWithAllItsRequiredFieldsIsSelected) {
  const auto index_of = [](std::string_view text) {
    const auto value = read<Overlapping>(text);
    return value ? std::to_string(value->index()) : value.error().message();
  };
  EXPECT_EQ(index_of(R"({"a":1,"b":2})"), "0") << "both structs are complete";
  EXPECT_EQ(index_of(R"({"b":2,"a":1})"), "0");
  EXPECT_EQ(index_of(R"({"a":1})"), "1") << "the first struct is incomplete";
  EXPECT_EQ(index_of(R"({"a":1,"c":3})"), "1");
  EXPECT_EQ(index_of(R"({"c":3,"a":1})"), "1");
  EXPECT_EQ(index_of(R"({"c":3})"), "2");
  EXPECT_EQ(index_of(R"({"d":4})"), "2");
  EXPECT_EQ(index_of("{}"), "2") << "only the last struct needs no field";
  EXPECT_EQ(index_of(R"({"b":2})"), "a: missing (at byte 6)") << "the first remaining struct";
  EXPECT_EQ(index_of(R"({"a":1,"d":4})"),
            "d: none of the alternatives has all these fields (at byte 7)");
  EXPECT_EQ(index_of(R"({"a":1,"b":2,"c":3})"), "1");
  EXPECT_EQ(index_of(R"({"a":1,"a":1})"), "a: given twice (at byte 7)");
}

struct Pair {
  int left;
  int right;
};
using PairOrPoint = std::variant<Point, Pair>;

TEST(Variants, StructThatIsExcludedIsNotSelectedThoughItNeedsNoField) {
  const auto pair = read<PairOrPoint>(R"({"left":1,"right":2})");
  ASSERT_TRUE(pair) << pair.error().message();
  ASSERT_EQ(pair->index(), 1U);
  EXPECT_EQ(std::get<Pair>(*pair).right, 2);
  EXPECT_EQ(error_of<PairOrPoint>(R"({"left":1})"), "right: missing (at byte 9)");
}

TEST(Variants, MayBeManyInAnArray) {
  std::string text = "[";
  for (int count = 0; count < 300; ++count) {
    if (count > 0) text += ',';
    text += count % 2 == 0 ? R"({"name":"n","side":1.0})" : R"({ "name" : "n" })";
  }
  const auto figures = read<std::vector<Figure>>(text + "]", {.depth_max = 2});
  ASSERT_TRUE(figures) << figures.error().message();
  ASSERT_EQ(figures->size(), 300U);
  EXPECT_EQ((*figures)[298].index(), 1U);
  EXPECT_EQ((*figures)[299].index(), 2U);
}

TEST(Variants, NumbersAreIntegersUnlessTheyHaveAFractionOrAnExponent) {
  struct Row {
    std::string_view text;
    bool real;
  };
  const Row rows[] = {{"0", false},   {"-0", false},   {"7", false},  {"-12", false},
                      {"0.0", true},  {"1.5", true},   {"1e2", true}, {"1E2", true},
                      {"-1e2", true}, {"-1.0", true},  {"12", false}, {"123456", false},
                      {"10e1", true}, {"-10E1", true}, {"9.0", true}};
  for (const Row& row : rows) {
    const auto integer_first = read<std::variant<std::int64_t, double>>(row.text);
    ASSERT_TRUE(integer_first) << row.text;
    EXPECT_EQ(integer_first->index(), row.real ? 1U : 0U) << row.text;
    const auto real_first = read<std::variant<std::string, double, bool, std::int64_t>>(row.text);
    ASSERT_TRUE(real_first) << row.text;
    EXPECT_EQ(real_first->index(), row.real ? 1U : 3U) << row.text;
    const auto in_list = read<std::vector<std::variant<float, int>>>(
        "[" + std::string(row.text) + "," + std::string(row.text) + " ]");
    ASSERT_TRUE(in_list) << row.text;
    EXPECT_EQ((*in_list)[0].index(), row.real ? 0U : 1U) << row.text;
    EXPECT_EQ((*in_list)[1].index(), row.real ? 0U : 1U) << row.text;
  }
}

TEST(Variants, AnIntegerIsSelectedForNumbersWithoutAnotherAlternative) {
  EXPECT_EQ((error_of<std::variant<int, std::string>>("1.5")),
            "expected an integer, found a fraction or an exponent (at byte 1)");
  EXPECT_EQ((read<std::variant<std::string, float>>("2")),
            (std::variant<std::string, float>(2.0F)));
}

struct S0 {
  int a;
  int m0;
};
struct S1 {
  int a;
  int m1;
};
struct S2 {
  int a;
  int m2;
};
struct S3 {
  int a;
  int m3;
};
struct S4 {
  int a;
  int m4;
};
struct S5 {
  int a;
  int m5;
};
struct S6 {
  int a;
  int m6;
};
struct S7 {
  int a;
  int m7;
};
struct S8 {
  int a;
  int m8;
};
struct S9 {
  int a;
  int m9;
};
struct S10 {
  int a;
  int m10;
};
struct S11 {
  int a;
  int m11;
};
struct S12 {
  int a;
  int m12;
};
struct S13 {
  int a;
  int m13;
};
struct S14 {
  int a;
  int m14;
};
/// It has the last of 32 names.
struct Last {
  std::optional<int> f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
      f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31;
  int a;
};
using Sixteen = std::variant<S0, S1, S2, S3, S4, S5, S6, S7, S8, S9, S10, S11, S12, S13, S14, Last>;

TEST(Variants, HoldSixteenStructs) {
  for (std::size_t number = 0; number < 15; ++number) {
    const std::string text = R"({"a":1,"m)" + std::to_string(number) + R"(":2})";
    const auto value = read<Sixteen>(text);
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(value->index(), number);
    EXPECT_EQ(write(*value), text);
  }
  for (const std::string_view text : {R"({"a":1})", R"({"a":1,"f31":2})"}) {
    const auto last = read<Sixteen>(text);
    ASSERT_TRUE(last) << last.error().message();
    EXPECT_EQ(last->index(), 15U) << "only the last one is complete";
  }
  EXPECT_EQ(error_of<Sixteen>(R"({"a":1,"m3":2,"m4":3})"), "m4: unknown field (at byte 14)");
}

TEST(Variants, AreWrittenAsNullWithoutAValue) {
  std::variant<std::string, Fragile> value("text");
  EXPECT_EQ(write(value), "\"text\"");
  EXPECT_THROW(value.emplace<Fragile>(1), std::runtime_error);
  ASSERT_TRUE(value.valueless_by_exception());
  EXPECT_EQ(write(value), "null");
}

}  // namespace
}  // namespace weir::json
