// Tests of single values in texts without quotes.
#include "weir/json/detail/text_value.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json {

enum class Light : std::uint8_t { red, amber, green };

}  // namespace weir::json

template <>
inline constexpr std::array weir::json::enumerators<weir::json::Light>{
    weir::json::Named{weir::json::Light::red, "red"},
    weir::json::Named{weir::json::Light::amber, "amber"},
    weir::json::Named{weir::json::Light::green, "green"}};

namespace weir::json::detail::text_value_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::sys_seconds;
using std::filesystem::path;

/// Returns the value, or `before` if the text does not fit.
template <class T>
T read(std::string_view text, T before) {
  T value = before;
  const bool fits = TextValue<T>::read(text, value);
  EXPECT_TRUE(fits || value == before) << text;
  return value;
}

TEST(TextValue, ReadsExactIntegers) {
  EXPECT_EQ(read<int>("-12", 1), -12);
  EXPECT_EQ(read<std::uint8_t>("255", 1), 255);
  for (const char* const text : {"", " 2", "2 ", "+2", "2.0", "0x2", "256", "-1", "two"}) {
    EXPECT_EQ(read<std::uint8_t>(text, 1), 1) << text;
  }
  EXPECT_EQ(TextValue<std::int8_t>::expected(), "an integer from -128 to 127");
  EXPECT_EQ(TextValue<std::uint16_t>::expected(), "an integer from 0 to 65535");
}

TEST(TextValue, ReadsFiniteNumbers) {
  EXPECT_EQ(read<double>("0.5", 1), 0.5);
  EXPECT_EQ(read<float>("-2e3", 1), -2000.0F);
  for (const char* const text : {"", "inf", "nan", "1e999", "1,5", " 2"}) {
    EXPECT_EQ(read<double>(text, 1), 1) << text;
  }
}

TEST(TextValue, ReadsWordsAndTexts) {
  EXPECT_TRUE(read<bool>("true", false));
  EXPECT_FALSE(read<bool>("false", true));
  EXPECT_TRUE(read<bool>("no", true));
  EXPECT_EQ(read<Light>("green", Light::red), Light::green);
  EXPECT_EQ(read<Light>("Green", Light::red), Light::red);
  EXPECT_EQ(TextValue<Light>::expected(), R"("red", "amber" or "green")");
  EXPECT_EQ(read<std::string>("a b", "-"), "a b");
  EXPECT_EQ(read<std::string_view>("", "-"), "");
}

TEST(TextValue, ReadsDurationsWithUnits) {
  EXPECT_EQ(read<milliseconds>("1.5s", 1ms), 1500ms);
  EXPECT_EQ(read<std::chrono::hours>("2d", 1h), 48h);
  using Minutes = std::chrono::duration<std::int8_t, std::ratio<60>>;
  EXPECT_EQ(read<Minutes>("127min", Minutes(1)), Minutes(127));
  EXPECT_EQ(read<Minutes>("128min", Minutes(1)), Minutes(1)) << "more than the type holds";
  for (const char* const text : {"", "5", "-5s", "1us", "1m", "5 s", "five"}) {
    EXPECT_EQ(read<milliseconds>(text, 1ms), 1ms) << text;
  }
  EXPECT_EQ(TextValue<std::chrono::nanoseconds>::expected(),
            "a duration such as 250ms, 5s or 1h30min");
  EXPECT_EQ(TextValue<milliseconds>::expected(),
            "a duration such as 250ms, 5s or 1h30min, a multiple of 1ms");
  EXPECT_EQ(TextValue<milliseconds>::write(1500ms), "1500ms");
  EXPECT_EQ(TextValue<milliseconds>::write(-2000ms), "-2s");
  EXPECT_EQ(TextValue<Minutes>::write(Minutes(-128)), "-128min");
  EXPECT_EQ(TextValue<std::chrono::hours>::write(std::chrono::hours::min()),
            "-9223372036854775808h");
  using Unsigned = std::chrono::duration<std::uint64_t>;
  EXPECT_EQ(TextValue<Unsigned>::write(Unsigned::max()), "18446744073709551615s");
  EXPECT_EQ(read<Unsigned>("18446744073709551615s", Unsigned(1)), Unsigned::max());
}

TEST(TextValue, ReadsTimesOfRfc3339) {
  constexpr sys_seconds before(1s);
  EXPECT_EQ(read<sys_seconds>("1970-01-01T02:00:07+02:00", before), sys_seconds(7s));
  EXPECT_EQ(read<sys_seconds>("1970-01-01T00:00:07.5Z", before), before) << "finer";
  EXPECT_EQ(read<sys_seconds>("1970-01-01T00:00:07", before), before) << "no offset";
  EXPECT_EQ(read<std::chrono::sys_days>("1970-01-03T00:00:00Z", {}),
            std::chrono::sys_days(std::chrono::days(2)));
  EXPECT_EQ(read<std::chrono::system_clock::time_point>("1969-12-31T23:59:59.999999999Z", {}),
            std::chrono::system_clock::time_point(-1ns));
  EXPECT_EQ(TextValue<sys_seconds>::write(sys_seconds(7s)), "1970-01-01T00:00:07Z");
  EXPECT_EQ(expected_instead_of<sys_seconds>("1970-01-01T24:00:00Z"),
            "a time of day from 00:00:00 to 23:59:59");
  EXPECT_EQ(TextValue<sys_seconds>::expected(),
            "a time such as 2026-11-25T22:14:43Z or 2026-11-25T23:14:43+01:00, a multiple of 1s");
}

TEST(TextValue, ReadsPathsWithoutNul) {
  EXPECT_EQ(read<path>("/etc/h\u00f6sts", "-"), path("/etc/h\u00f6sts"));
  EXPECT_EQ(read<path>("", "-"), path());
  EXPECT_EQ(read<path>(std::string_view("/etc/passwd\0.png", 16), "-"), path("-"));
  EXPECT_EQ(TextValue<path>::write("a/../b"), "a/../b") << "not normalised";
  EXPECT_EQ(TextValue<path>::expected(), "a path without the character NUL");
}

struct Upload {
  path file;
  milliseconds wait{};
  std::chrono::sys_time<milliseconds> at;
  std::optional<std::chrono::seconds> every;
  bool operator==(const Upload&) const = default;
};

/// Returns the message of the error of reading an Upload.
std::string error_of(std::string_view text) {
  const auto upload = json::read<Upload>(text);
  return upload ? "it was read" : upload.error().message();
}

TEST(TextValue, StandsInAStringOfJson) {
  const std::string text =
      R"({"file":"a \"b\".txt","wait":"250ms","at":"2026-11-25T22:14:43.500Z","every":"2min"})";
  const auto upload = json::read<Upload>(text);
  ASSERT_TRUE(upload.has_value()) << upload.error().message();
  EXPECT_EQ(upload->file, "a \"b\".txt");
  EXPECT_EQ(upload->wait, 250ms);
  EXPECT_EQ(upload->at.time_since_epoch(), 1'795'644'883'500ms);
  EXPECT_EQ(upload->every, 2min);
  EXPECT_EQ(json::write(*upload), text);
  EXPECT_EQ(json::read<std::vector<milliseconds>>(R"([ "1s" , "2ms"])"),
            (std::vector<milliseconds>{1s, 2ms}));
  using Either = std::variant<std::monostate, bool, sys_seconds>;
  EXPECT_EQ(json::read<Either>(R"("1970-01-01T00:00:07Z")"), Either(sys_seconds(7s)));
}

TEST(TextValue, ErrorInJsonShowsTheText) {
  EXPECT_EQ(error_of(R"({"file":"a","wait": "250 ms"})"),
            "wait: expected a duration such as 250ms, 5s or 1h30min, a multiple of 1ms, found "
            "\"250 ms\" (at byte 20)");
  EXPECT_EQ(error_of(R"({"wait":250})"),
            "wait: expected a duration such as 250ms, 5s or 1h30min, a multiple of 1ms, found a "
            "number (at byte 8)");
  EXPECT_EQ(error_of(R"({"at":"2016-12-31T23:59:60Z"})"),
            "at: expected a time without a leap second (seconds from 00 to 59), found "
            "\"2016-12-31T23:59:60Z\" (at byte 6)");
  EXPECT_EQ(error_of(R"({"file":"a\u0000b"})"),
            "file: expected a path without the character NUL, found \"a\\u0000b\" (at byte 8)");
  EXPECT_EQ(error_of(R"({"every":null,"file":"x","wait":"-1s"})"),
            "wait: expected a duration such as 250ms, 5s or 1h30min, a multiple of 1ms, found "
            "\"-1s\" (at byte 32)");
}

static_assert(!HasTextValue<std::chrono::duration<double>>, "a number of ticks is exact");
static_assert(!HasTextValue<std::chrono::steady_clock::time_point>, "its epoch is unknown");
static_assert(!HasTextValue<std::vector<int>> && !HasTextValue<std::optional<int>>);
static_assert(!HasTextValue<char> && HasTextValue<std::int64_t>);

}  // namespace
}  // namespace weir::json::detail::text_value_test
