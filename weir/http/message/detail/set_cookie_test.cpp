// Tests of the parser of Set-Cookie headers.
#include "weir/http/message/detail/set_cookie.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace weir::http::set_cookie_test {
namespace {

using namespace std::chrono_literals;

// 1994-11-06 08:49:37, the date of RFC 9110 §5.6.7.
constexpr WallTime example(784111777s);

std::string parts(std::string_view text) {
  const auto cookie = parse_set_cookie(text);
  if (!cookie) return "none";
  std::string all(cookie->name);
  all.append("|").append(cookie->value).append("|").append(cookie->domain);
  all.append("|").append(cookie->path).append(cookie->secure ? "|secure" : "|");
  if (cookie->max_age) {
    all += "|" + std::to_string(std::chrono::floor<std::chrono::seconds>(*cookie->max_age).count());
  }
  if (cookie->expires) all += *cookie->expires == example ? "|example" : "|other";
  return all;
}

struct Row {
  std::string_view text;
  std::string_view expected;
};

TEST(SetCookie, HasANameAValueAndAttributes) {
  constexpr Row rows[] = {
      {"a=b", "a|b|||"},
      {" a = b ; Secure", "a|b|||secure"},
      {"a=", "a||||"},
      {"a=b=c", "a|b=c|||"},
      {"a=\"b c\"", "a|\"b c\"|||"},
      {"a=b; Domain=.Example.com; Path=/dir", "a|b|Example.com|/dir|"},
      {"a=b;domain=x;DOMAIN=y", "a|b|y||"},
      {"a=b; Domain=x; Domain=", "a|b|x||"},
      {"a=b; Path=dir", "a|b|||"},
      {"a=b; Path=/x; Path=", "a|b|||"},
      {"a=b; Max-Age=60; HttpOnly; SameSite=Lax", "a|b||||60"},
      {"a=b; Max-Age=-60", "a|b||||-1"},
      {"a=b; Max-Age=0; Max-Age=6x; Max-Age=; Max-Age=-; Max-Age=+5", "a|b||||0"},
      {"a=b; Max-Age=99999999999999999999", "a|b||||9223372036"},
      {"a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "a|b||||example"},
      {"a=b; Expires=never", "a|b|||"},
      {"a=b; Secure=no", "a|b|||secure"},
      {"a=b;;; ;=;", "a|b|||"},
  };
  for (const Row& row : rows) EXPECT_EQ(parts(row.text), row.expected) << row.text;
}

TEST(SetCookie, NeedsANameAndNoControlCharacter) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv, "a"sv, "=b"sv, " =b"sv, "; a=b"sv, "a=b\n"sv, "a=\0b"sv,
                                      "a=b; Path=/\x7f"sv, "a; Path=/x"sv}) {
    EXPECT_EQ(parts(text), "none") << text;
  }
}

TEST(SetCookie, IgnoresLongAttributes) {
  const std::string longest = "/" + std::string(1023, 'p');
  EXPECT_EQ(parse_set_cookie("a=b; Path=" + longest)->path, longest);
  EXPECT_EQ(parse_set_cookie("a=b; Path=" + longest + "p")->path, "");
}

TEST(SetCookie, DatesHaveManyForms) {
  for (const std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "6 november 1994 8:49:37", "08:49:37 1994 06 NOV",
        "06;Nov;1994;08:49:37", "6th Nov 1994x 08:49:37z"}) {
    const auto date = parse_cookie_date(text);
    ASSERT_TRUE(date) << text;
    EXPECT_EQ(*date, example) << text;
  }
}

TEST(SetCookie, YearsOfTwoDigitsBeginIn1970) {
  const auto year_of = [](const std::string& year) {
    const auto date = parse_cookie_date("1 Jan " + year + " 00:00:00");
    if (!date) return 0;
    const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(*date));
    return static_cast<int>(day.year());
  };
  EXPECT_EQ(year_of("70"), 1970);
  EXPECT_EQ(year_of("99"), 1999);
  EXPECT_EQ(year_of("69"), 2069);
  EXPECT_EQ(year_of("00"), 2000);
  EXPECT_EQ(year_of("100"), 0);
  EXPECT_EQ(parse_cookie_date("1 Jan 1601 00:00:00"), WallTime::min());
  EXPECT_EQ(parse_cookie_date("1 Jan 9999 00:00:00"), WallTime::max());
  EXPECT_EQ(year_of("1678"), 1678);
  EXPECT_EQ(year_of("2261"), 2261);
}

TEST(SetCookie, RejectsWhatIsNoDate) {
  for (const std::string_view text :
       {"", "Sun, 06 Nov 1994", "06 1994 08:49:37", "Nov 1994 08:49:37", "06 Nov 08:49:37",
        "06 Nov 1994 24:49:37", "06 Nov 1994 08:60:37", "06 Nov 1994 08:49:60",
        "31 Feb 1994 08:49:37", "00 Nov 1994 08:49:37", "32 Nov 1994 08:49:37",
        "06 Nov 1600 08:49:37", "06 Nov 19945 08:49:37", "06 Nov 1994 08:49",
        "06 Nov 1994 8:4:", "06 Nov 1994 008:49:37", "06 No 1994 08:49:37"}) {
    EXPECT_FALSE(parse_cookie_date(text)) << text;
  }
}

TEST(SetCookie, PrefixesHaveAnyLetterCase) {
  EXPECT_EQ(cookie_prefix("__Host-a"), CookiePrefix::host);
  EXPECT_EQ(cookie_prefix("__hOST-"), CookiePrefix::host);
  EXPECT_EQ(cookie_prefix("__Secure-a"), CookiePrefix::secure);
  EXPECT_EQ(cookie_prefix("__SECURE-a"), CookiePrefix::secure);
  for (const std::string_view name : {"", "a", "__Host", "_Host-a", "Host-a", "a__Host-"}) {
    EXPECT_EQ(cookie_prefix(name), CookiePrefix::none) << name;
  }
}

}  // namespace
}  // namespace weir::http::set_cookie_test
