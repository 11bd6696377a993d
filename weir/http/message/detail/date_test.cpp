// Tests of Date.
#include "weir/http/message/detail/date.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace weir::http::date_test {
namespace {

std::string at(std::int64_t seconds, Duration more = {}) {
  return std::string(Date(WallTime(std::chrono::seconds(seconds) + more)).text());
}

TEST(Date, FormatsTheExampleOfTheRfc) {
  EXPECT_EQ(at(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST(Date, RoundsFractionsDown) {
  EXPECT_EQ(at(784111777, 999'999'999ns), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(at(0, -1ns), "Wed, 31 Dec 1969 23:59:59 GMT");
}

TEST(Date, FormatsTheFirstAndTheLastTime) {
  EXPECT_EQ(Date(WallTime::min()).text(), "Tue, 21 Sep 1677 00:12:43 GMT");
  EXPECT_EQ(Date(WallTime::max()).text(), "Fri, 11 Apr 2262 23:47:16 GMT");
}

TEST(Date, AgreesWithTheCLibrary) {
  for (std::int64_t seconds = -1'000'000'000; seconds < 8'000'000'000; seconds += 86'399 * 97) {
    const std::time_t time = seconds;
    std::tm parts{};
    gmtime_r(&time, &parts);
    char expected[40];
    ASSERT_GT(std::strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts), 0u);
    ASSERT_EQ(at(seconds), expected);
  }
}

const WallTime example{std::chrono::seconds(784111777)};

TEST(ParseHttpDate, ReadsTheThreeFormsOfTheRfc) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), example);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), example);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), example);
  EXPECT_EQ(parse_http_date("Wed Nov 16 08:49:37 1994"), example + std::chrono::days(10));
}

TEST(ParseHttpDate, RejectsOtherTexts) {
  for (const std::string_view text : {"",
                                      "x",
                                      "Sun",
                                      "0",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sun, 6 Nov 1994 08:49:37 GMT",
                                      "Sun, 06 nov 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 UTC",
                                      "Sun, 06 Nov 1994 8:49:37 GMT",
                                      "Sun, 31 Feb 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ",
                                      "06 Nov 1994 08:49:37 GMT",
                                      "unS, 06 Nov 1994 08:49:37 GMT",
                                      "Sun, 06-Nov-94 08:49:37 GMT",
                                      "Sunday, 06-Nov-1994 08:49:37 GMT",
                                      "Sunday, 06 Nov 94 08:49:37 GMT",
                                      "Sun Nov 6 08:49:37 1994",
                                      "Sun Nov 06 08:49:37 1994",
                                      "Sun, Nov  6 08:49:37 1994",
                                      "Sun Nov  6 08:49:37 94"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

}  // namespace
}  // namespace weir::http::date_test
