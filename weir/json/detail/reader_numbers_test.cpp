// Tests of reading numbers and truth values: exact, in range, or refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "weir/json/read.hpp"

namespace weir::json::reader_numbers_test {
namespace {

template <class T>
std::string error_of(std::string_view text) {
  const auto result = read<T>(text);
  return result ? "it was read as " + std::to_string(*result) : result.error().what;
}

TEST(Numbers, IntegersAreExactToTheirLimits) {
  EXPECT_EQ(read<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(read<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(read<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(read<std::int64_t>("9007199254740993"), 9007199254740993);  // no double holds it
  EXPECT_EQ(read<std::int8_t>("-128"), INT8_MIN);
  EXPECT_EQ(read<std::int8_t>("127"), INT8_MAX);
  EXPECT_EQ(read<std::uint8_t>("255"), UINT8_MAX);
  EXPECT_EQ(read<int>("0"), 0);
  EXPECT_EQ(read<int>("-0"), 0);
  EXPECT_EQ(read<unsigned>("-0"), 0u);
}

TEST(Numbers, IntegersBeyondTheirLimitsAreErrors) {
  EXPECT_EQ(error_of<std::int8_t>("128"),
            "expected an integer from -128 to 127, found a number out of range");
  EXPECT_EQ(error_of<std::int8_t>("-129"),
            "expected an integer from -128 to 127, found a number out of range");
  EXPECT_EQ(error_of<std::uint8_t>("256"),
            "expected an integer from 0 to 255, found a number out of range");
  EXPECT_EQ(error_of<std::uint8_t>("-1"),
            "expected an integer from 0 to 255, found a number out of range");
  const std::string_view signed_range =
      "expected an integer from -9223372036854775808 to 9223372036854775807, found a number out of "
      "range";
  EXPECT_EQ(error_of<std::int64_t>("9223372036854775808"), signed_range);
  EXPECT_EQ(error_of<std::int64_t>("-9223372036854775809"), signed_range);
  EXPECT_EQ(error_of<std::int64_t>("18446744073709551616"), signed_range);
  EXPECT_EQ(error_of<std::int64_t>("-18446744073709551616"), signed_range);
  EXPECT_EQ(error_of<std::int64_t>("99999999999999999999999999"), signed_range);
  const std::string_view unsigned_range =
      "expected an integer from 0 to 18446744073709551615, found a number out of range";
  EXPECT_EQ(error_of<std::uint64_t>("18446744073709551616"), unsigned_range);
  EXPECT_EQ(error_of<std::uint64_t>("36893488147419103232"), unsigned_range);
  EXPECT_EQ(error_of<std::uint64_t>("184467440737095516160"), unsigned_range);
}

TEST(Numbers, IntegersHaveNoFractionOrExponent) {
  for (const std::string_view text : {"1.0", "1e2", "1E2", "0.0", "-1.5", "1."}) {
    EXPECT_EQ(error_of<int>(text), "expected an integer, found a fraction or an exponent") << text;
  }
}

TEST(Numbers, TheGrammarIsStrict) {
  const std::string_view bad[] = {"01",  "-01",      "00",        "+1",   "1.",   ".5",    "-",
                                  "-.5", "1e",       "1e+",       "1.e1", "0x10", "1_0",   "NaN",
                                  "nan", "Infinity", "inf",       "--1",  "- 1",  "1e1.5", "0e",
                                  "1 2", "1,",       "-Infinity", "1f",   "１"};
  for (const std::string_view text : bad) {
    EXPECT_FALSE(read<double>(text)) << text;
    EXPECT_FALSE(read<float>(text)) << text;
    EXPECT_FALSE(read<int>(text)) << text;
  }
  EXPECT_EQ(error_of<double>("01"), "a number with a leading zero");
  EXPECT_EQ(error_of<int>("-00"), "a number with a leading zero");
  EXPECT_EQ(error_of<double>("1.e5"), "expected a digit, found 'e'");
  EXPECT_EQ(error_of<double>("-x"), "expected a digit, found 'x'");
}

TEST(Numbers, EndWhereTheTextEnds) {
  // Digits behind the text do not count.
  const std::string_view digits = "-1234";
  EXPECT_EQ(read<int>(digits.substr(0, 2)), -1);
  EXPECT_EQ(read<double>(digits.substr(0, 3)), -12.0);
  EXPECT_FALSE(read<int>(digits.substr(0, 1)));
  const std::string_view fraction = "0.25e31";
  EXPECT_EQ(read<double>(fraction.substr(0, 3)), 0.2);
  EXPECT_EQ(read<double>(fraction.substr(0, 6)), 250.0);
  EXPECT_FALSE(read<double>(fraction.substr(0, 2)));
  EXPECT_FALSE(read<double>(fraction.substr(0, 5)));

  // A fraction behind the text does not make its integer a double.
  using Either = std::variant<int, double>;
  EXPECT_EQ(read<Either>(std::string_view("123.5").substr(0, 2)), Either(12));
}

TEST(Numbers, DoublesAreTheNearest) {
  EXPECT_EQ(read<double>("20"), 20.0);
  EXPECT_EQ(read<double>("-0.1e+1"), -1.0);
  EXPECT_EQ(read<double>("1E-2"), 0.01);
  EXPECT_EQ(read<double>("123456789012345678901234567890"), 123456789012345678901234567890.0);
  EXPECT_EQ(read<double>("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(read<double>("4.9406564584124654e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(read<double>("9007199254740993"), 9007199254740992.0);  // a tie goes to even
  EXPECT_EQ(read<double>("0." + std::string(1000, '0') + "1e1001"), 1.0);
  EXPECT_EQ(read<double>("1" + std::string(1000, '0') + "e-1000"), 1.0);
  EXPECT_EQ(read<float>("16777217"), 16777216.0F);
  // The number is rounded once, not first to a double.
  EXPECT_EQ(read<float>("1.00000017881393432617187499"), 1.00000011920928955078125F);
}

TEST(Numbers, ZeroKeepsItsSign) {
  ASSERT_TRUE(read<double>("-0.0"));
  EXPECT_TRUE(std::signbit(*read<double>("-0.0")));
  EXPECT_TRUE(std::signbit(*read<double>("-0")));
  EXPECT_FALSE(std::signbit(*read<double>("0")));
}

TEST(Numbers, TooLargeIsAnErrorAndTooSmallIsZero) {
  const std::string_view beyond = "a number out of range";
  const std::string zeros(400, '0');
  for (const std::string& text :
       {std::string("1e309"), std::string("-1e309"), std::string("1.7976931348623159e308"),
        std::string("1e99999999999999999999"), "1" + zeros, "-1" + zeros + ".5",
        "0." + zeros + "1e800", std::string("0.00001e400")}) {
    EXPECT_EQ(error_of<double>(text), beyond) << text;
  }
  for (const std::string& text :
       {std::string("1e-400"), std::string("2e-324"), std::string("1e-99999999999999999999"),
        "0." + zeros + "1", "0." + zeros + "1e10", "1" + zeros + "e-800",
        std::string("0e99999999999999999999"), std::string("0.0e400"), std::string("10000e-400")}) {
    EXPECT_EQ(read<double>(text), 0.0) << text;
    EXPECT_FALSE(std::signbit(*read<double>(text))) << text;
    EXPECT_TRUE(std::signbit(*read<double>("-" + text))) << text;
  }
  EXPECT_EQ(error_of<float>("3.5e38"), beyond);
  EXPECT_EQ(read<float>("1e-50"), 0.0F);
  EXPECT_FALSE(std::signbit(*read<float>("1e-50")));
  EXPECT_TRUE(std::signbit(*read<float>("-1e-50")));
  EXPECT_EQ(error_of<float>("-3.5e38"), beyond);
}

TEST(Numbers, OtherKindsAreNamed) {
  EXPECT_EQ(error_of<int>("\"1\""), "expected an integer, found a string");
  EXPECT_EQ(error_of<int>("true"), "expected an integer, found true");
  EXPECT_EQ(error_of<int>("nul"), "expected an integer, found 'n'");
  EXPECT_EQ(error_of<unsigned>("\"1\""), "expected an integer, found a string");
  EXPECT_EQ(error_of<std::uint64_t>("null"), "expected an integer, found null");
  EXPECT_EQ(error_of<double>("{}"), "expected a number, found an object");
  EXPECT_EQ(error_of<double>("[]"), "expected a number, found an array");
  EXPECT_EQ(error_of<int>("\x80"), "expected an integer, found the byte 0x80");
}

}  // namespace
}  // namespace weir::json::reader_numbers_test
