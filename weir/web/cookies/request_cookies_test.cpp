// Tests of the cookies of a request.
#include "weir/web/cookies/request_cookies.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"

namespace weir::http::request_cookies_test {
namespace {

/// Returns the cookies of a request with these header lines as "name=value|".
std::string cookies_of(std::string_view header_lines) {
  TextRequest request("GET /", {}, header_lines);
  std::string text;
  for (const auto& [name, value] : RequestCookies(request.request())) {
    text.append(name).append("=").append(value).append("|");
  }
  return text;
}

TEST(RequestCookies, ReadsThePairsOfAllHeadersInOrder) {
  EXPECT_EQ(cookies_of("Cookie: a=1; b=2\r\nX: y\r\ncookie: c=3\r\n"), "a=1|b=2|c=3|");
  EXPECT_EQ(cookies_of("X: y\r\n"), "");
  EXPECT_EQ(cookies_of("Cookie:\r\nCookie: ;\r\nCookie: a=\r\n"), "a=|");
}

TEST(RequestCookies, SkipsPartsWithoutANameOrAValue) {
  EXPECT_EQ(cookies_of("Cookie: a; =1; ;;b=2;;; c\r\n"), "b=2|");
}

TEST(RequestCookies, IsLenientAboutSpacesAndBytes) {
  EXPECT_EQ(cookies_of("Cookie: a=1;b=2;\t c = 3 \r\n"), "a=1|b=2|c =3|");
  EXPECT_EQ(cookies_of("Cookie: a=x=y; b[0]=\xc3\xa4, 1\r\n"), "a=x=y|b[0]=\xc3\xa4, 1|");
}

TEST(RequestCookies, RemovesQuotesAroundAValue) {
  EXPECT_EQ(cookies_of("Cookie: a=\"1 2\"; b=\"\"; c=\"; d=\"x\r\n"), "a=1 2|b=|c=\"|d=\"x|");
}

TEST(RequestCookies, FindsTheFirstOfAName) {
  TextRequest request("GET /", {}, "Cookie: ab=0; a=1; A=3; a=2\r\n");
  const RequestCookies cookies(request.request());
  EXPECT_EQ(cookies.find("a"), "1");
  EXPECT_EQ(cookies.find("A"), "3");
  EXPECT_EQ(cookies.find("b"), std::nullopt);
}

}  // namespace
}  // namespace weir::http::request_cookies_test
