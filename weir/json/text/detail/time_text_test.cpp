// Tests how points in time are parsed and printed.
#include "weir/json/text/detail/time_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

namespace weir::json::detail::time_text_test {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr TimeScale seconds{1'000'000'000, least, most};
constexpr TimeScale milliseconds{1'000'000, least, most};
constexpr TimeScale nanoseconds{1, least, most};
constexpr TimeScale days{86'400'000'000'000, std::numeric_limits<std::int32_t>::min(),
                         std::numeric_limits<std::int32_t>::max()};

/// Returns the number of ticks, or what was expected.
std::string parsed(std::string_view text, const TimeScale& scale = seconds) {
  const auto ticks = parse_time(text, scale);
  return ticks ? std::to_string(*ticks) : ticks.error();
}

TEST(TimeText, ParsesUtcAndOffsets) {
  EXPECT_EQ(parsed("1970-01-01T00:00:00Z"), "0");
  EXPECT_EQ(parsed("1969-12-31T23:59:59Z"), "-1");
  EXPECT_EQ(parsed("2026-11-25T22:14:43Z"), "1795644883");
  EXPECT_EQ(parsed("2026-11-25t22:14:43z"), "1795644883");
  EXPECT_EQ(parsed("2026-11-25T23:14:43+01:00"), "1795644883");
  EXPECT_EQ(parsed("2026-11-26T10:29:43+12:15"), "1795644883");
  EXPECT_EQ(parsed("2026-11-25T14:44:43-07:30"), "1795644883");
  EXPECT_EQ(parsed("1970-01-01T00:00:00-00:00"), "0") << "an unknown offset (RFC 3339 §4.3)";
  EXPECT_EQ(parsed("1970-01-01T23:59:00+23:59"), "0");
  EXPECT_EQ(parsed("2000-02-29T00:00:00Z"), "951782400");
  EXPECT_EQ(parsed("0000-01-01T00:00:00Z"), "-62167219200");
  EXPECT_EQ(parsed("9999-12-31T23:59:59Z"), "253402300799");
  EXPECT_EQ(parsed("1970-01-03T00:00:00Z", days), "2");
}

TEST(TimeText, ParsesFractions) {
  EXPECT_EQ(parsed("1970-01-01T00:00:01.5Z", milliseconds), "1500");
  EXPECT_EQ(parsed("1970-01-01T00:00:01.050+00:00", milliseconds), "1050");
  EXPECT_EQ(parsed("1970-01-01T00:00:00.123456789Z", nanoseconds), "123456789");
  EXPECT_EQ(parsed("1969-12-31T23:59:59.999Z", milliseconds), "-1");
  EXPECT_EQ(parsed("1970-01-01T00:00:01.000Z"), "1");
  EXPECT_EQ(parsed("1970-01-01T00:00:01.00000000000000000000000000Z", nanoseconds), "1000000000");
}

TEST(TimeText, DescribesTheTextsThatFit) {
  const std::string form = "a time such as 2026-11-25T22:14:43Z or 2026-11-25T23:14:43+01:00";
  for (const std::string_view text :
       {"", "now", "2026-11-25", "2026-11-25 22:14:43Z", "26-11-25T22:14:43Z", "2026-11-25T22:14Z",
        "2026-1-25T22:14:43Z", "2026-11-25T22:14:4Z", "+2026-11-25T22:14:43Z",
        "2026/11/25T22:14:43Z", "2026-11-25T22.14.43Z", "20261125T221443Z", " 2026-11-25T22:14:43Z",
        "2026-11-25T22:14:43.Z", "2026-11-25T22:14:43.", "2026-11-25T22:1x:43Z"}) {
    EXPECT_EQ(parsed(text, nanoseconds), form) << text;
  }
  for (const std::string_view text :
       {"2026-11-25T22:14:43", "2026-11-25T22:14:43.5", "2026-11-25T22:14:43 01:00",
        "2026-11-25T22:14:43+0100", "2026-11-25T22:14:43+01", "2026-11-25T22:14:43Z ",
        "2026-11-25T22:14:43ZZ", "2026-11-25T22:14:43UTC", "2026-11-25T22:14:43+1:00",
        "2026-11-25T22:14:43+01:00Z", "2026-11-25T22:14:43,5Z"}) {
    EXPECT_EQ(parsed(text), "a time that ends with Z or an offset such as +01:00") << text;
  }
  EXPECT_EQ(parsed("2026-11-25T22:14:43+24:00"), "an offset from -23:59 to +23:59");
  EXPECT_EQ(parsed("2026-11-25T22:14:43-01:60"), "an offset from -23:59 to +23:59");
  for (const std::string_view text :
       {"2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z"}) {
    EXPECT_EQ(parsed(text), "a date of the calendar") << text;
  }
  for (const std::string_view text :
       {"2026-11-25T24:00:00Z", "2026-11-25T22:60:00Z", "2026-11-25T22:14:61Z"}) {
    EXPECT_EQ(parsed(text), "a time of day from 00:00:00 to 23:59:59") << text;
  }
  EXPECT_EQ(parsed("2016-12-31T23:59:60Z"), "a time without a leap second (seconds from 00 to 59)");
}

TEST(TimeText, ATimeBetweenTwoTicksDoesNotFit) {
  EXPECT_EQ(parsed("1970-01-01T00:00:01.5Z"), "a time that is a multiple of 1s");
  EXPECT_EQ(parsed("1969-12-31T23:59:59.5Z"), "a time that is a multiple of 1s");
  EXPECT_EQ(parsed("1970-01-01T00:00:01.0001Z", milliseconds), "a time that is a multiple of 1ms");
  EXPECT_EQ(parsed("1970-01-01T00:00:01.0000000001Z", nanoseconds),
            "a time that is a multiple of 1ns");
  EXPECT_EQ(parsed("1970-01-01T01:00:00Z", days), "a time that is a multiple of 1d");
  EXPECT_EQ(expected_time(days),
            "a time such as 2026-11-25T22:14:43Z or 2026-11-25T23:14:43+01:00, a multiple of 1d");
}

TEST(TimeText, ATimeOutsideOfTheTypeDoesNotFit) {
  const std::string of_nanoseconds =
      "a time from 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z";
  EXPECT_EQ(parsed("2262-04-11T23:47:16.854775807Z", nanoseconds), std::to_string(most));
  EXPECT_EQ(parsed("1677-09-21T00:12:43.145224192Z", nanoseconds), std::to_string(least));
  EXPECT_EQ(parsed("2262-04-11T23:47:16.854775808Z", nanoseconds), of_nanoseconds);
  EXPECT_EQ(parsed("1677-09-21T00:12:43.145224191Z", nanoseconds), of_nanoseconds);
  EXPECT_EQ(parsed("9999-12-31T23:59:59.999Z", nanoseconds), of_nanoseconds);
  // Years that RFC 3339 has, with an offset that leads out of them.
  const std::string years = "a time from 0000-01-01T00:00:00Z to 9999-12-31T23:59:59Z";
  EXPECT_EQ(parsed("9999-12-31T23:59:59-00:01"), years);
  EXPECT_EQ(parsed("0000-01-01T00:00:00+00:01"), years);
  constexpr TimeScale small{1'000'000'000, -5, 5};
  EXPECT_EQ(parsed("1970-01-01T00:00:05Z", small), "5");
  EXPECT_EQ(parsed("1970-01-01T00:00:06Z", small),
            "a time from 1969-12-31T23:59:55Z to 1970-01-01T00:00:05Z");
  EXPECT_EQ(parsed("1969-12-31T23:59:54Z", small),
            "a time from 1969-12-31T23:59:55Z to 1970-01-01T00:00:05Z");
}

TEST(TimeText, PrintsUtcWithTheDigitsThatATimeNeeds) {
  EXPECT_EQ(time_text(0, 1), "1970-01-01T00:00:00Z");
  EXPECT_EQ(time_text(1'795'644'883, seconds.tick), "2026-11-25T22:14:43Z");
  EXPECT_EQ(time_text(1'500, milliseconds.tick), "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(time_text(-1, milliseconds.tick), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(time_text(1'000, 1), "1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(time_text(1, 1), "1970-01-01T00:00:00.000000001Z");
  EXPECT_EQ(time_text(-719'528, days.tick), "0000-01-01T00:00:00Z");
}

TEST(TimeText, PrintsYearsThatHaveNoTextInRfc3339WithASign) {
  EXPECT_EQ(time_text(253'402'300'800, seconds.tick), "+010000-01-01T00:00:00Z");
  EXPECT_EQ(time_text(-62'167'219'201, seconds.tick), "-000001-12-31T23:59:59Z");
  EXPECT_EQ(time_text(most, seconds.tick), "+292277026596-12-04T15:30:07Z");
  EXPECT_EQ(time_text(least, seconds.tick), "-292277022657-01-27T08:29:52Z");
}

TEST(TimeText, PrintedTimesParseAgain) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    for (const TimeScale& scale : {nanoseconds, milliseconds, seconds}) {
      const auto bits = static_cast<std::int64_t>(random());
      const std::int64_t ticks = scale.tick == 1 ? bits : bits % 60'000'000'000;
      const std::string text = time_text(ticks, scale.tick);
      EXPECT_EQ(parsed(text, scale), std::to_string(ticks)) << text;
    }
  }
}

}  // namespace
}  // namespace weir::json::detail::time_text_test
