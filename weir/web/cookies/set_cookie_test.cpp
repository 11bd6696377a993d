// Tests of cookies that a response sets.
#include "weir/web/cookies/set_cookie.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/http/message/detail/set_cookie.hpp"

namespace weir::http::set_cookie_test {
namespace {

using namespace std::chrono_literals;

std::error_code error_of(const SetCookie& cookie) {
  const auto text = to_header(cookie);
  return text ? std::error_code() : text.error();
}

TEST(SetCookie, HasSafeDefaults) {
  EXPECT_EQ(to_header({.name = "a", .value = "1"}), "a=1; Path=/; SameSite=Lax; Secure; HttpOnly");
}

TEST(SetCookie, WritesAllAttributes) {
  const SetCookie cookie{.name = "a",
                         .value = "1",
                         .max_age = 1500ms,
                         .expires = WallTime(std::chrono::seconds(784'111'777)),
                         .path = "/app",
                         .domain = "example.org",
                         .same_site = SameSite::none,
                         .http_only = false,
                         .partitioned = true};
  EXPECT_EQ(to_header(cookie),
            "a=1; Max-Age=2; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/app; Domain=example.org; "
            "SameSite=None; Secure; Partitioned");
}

TEST(SetCookie, IsWhatAClientReads) {
  const SetCookie cookie{.name = "__Secure-a",
                         .value = "x=y",
                         .max_age = 90s,
                         .path = "/app",
                         .domain = "example.org"};
  const std::string text = to_header(cookie).value();
  const auto parsed = parse_set_cookie(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->name, "__Secure-a");
  EXPECT_EQ(parsed->value, "x=y");
  EXPECT_EQ(parsed->path, "/app");
  EXPECT_EQ(parsed->domain, "example.org");
  EXPECT_EQ(parsed->max_age, 90s);
  EXPECT_TRUE(parsed->secure);
}

TEST(SetCookie, RefusesNamesThatAreNoTokens) {
  for (const char* name : {"", "a b", "a=b", "a;b", "a\r\nb", "\xc3\xa4"}) {
    EXPECT_EQ(error_of({.name = name}), CookieError::bad_name) << name;
  }
}

TEST(SetCookie, RefusesEachByteThatAValueCannotHave) {
  for (int code = 0; code < 256; ++code) {
    const bool valid =
        code > 0x20 && code < 0x7f &&
        std::string_view("\",;\\").find(static_cast<char>(code)) == std::string::npos;
    const std::string value{'x', static_cast<char>(code)};
    EXPECT_EQ(error_of({.name = "a", .value = value}) == CookieError::bad_value, !valid) << code;
  }
}

TEST(SetCookie, RefusesDomainsAndPathsOfAnotherForm) {
  for (const char* domain : {".a.org", "a.org.", "a..org", "-a.org", "a-.org", "a_b.org", "a;b",
                             "a.org\r\nX: y", " a.org"}) {
    EXPECT_EQ(error_of({.name = "a", .domain = domain}), CookieError::bad_domain) << domain;
  }
  EXPECT_EQ(error_of({.name = "a", .domain = std::string(64, 'a') + ".org"}),
            CookieError::bad_domain);
  EXPECT_EQ(error_of({.name = "a", .domain = "a-1.Example.org"}), std::error_code());
  for (const char* path : {"", "a", "/a;b", "/a\nb", "/\x7f", "/\xc3\xa4"}) {
    EXPECT_EQ(error_of({.name = "a", .path = path}), CookieError::bad_path) << path;
  }
}

TEST(SetCookie, RefusesWhatAClientIgnoresForItsSize) {
  EXPECT_EQ(error_of({.name = "a", .value = std::string(4095, 'x')}), std::error_code());
  EXPECT_EQ(error_of({.name = "a", .value = std::string(4096, 'x')}), CookieError::too_long);
  EXPECT_EQ(error_of({.name = "a", .path = "/" + std::string(1024, 'x')}), CookieError::too_long);
}

TEST(SetCookie, KeepsThePromisesOfPrefixes) {
  EXPECT_EQ(error_of({.name = "__Host-a"}), std::error_code());
  EXPECT_EQ(error_of({.name = "__host-a", .domain = "a.org"}), CookieError::host_prefix_is_wider);
  EXPECT_EQ(error_of({.name = "__Host-a", .path = "/app"}), CookieError::host_prefix_is_wider);
  EXPECT_EQ(error_of({.name = "__Host-a", .secure = false}), CookieError::needs_secure);
  EXPECT_EQ(error_of({.name = "__Secure-a", .secure = false}), CookieError::needs_secure);
  EXPECT_EQ(error_of({.name = "__Secure-a", .path = "/app", .domain = "a.org"}), std::error_code());
  EXPECT_EQ(error_of({.name = "a", .same_site = SameSite::none, .secure = false}),
            CookieError::needs_secure);
  EXPECT_EQ(error_of({.name = "a", .secure = false, .partitioned = true}),
            CookieError::needs_secure);
}

TEST(SetCookie, ErrorsAreThoseOfTheProgram) {
  const Response response(make_error_code(CookieError::bad_path));
  EXPECT_EQ(response.status(), Status::internal_error);
  EXPECT_EQ(make_error_code(CookieError::bad_name).message(), "cookie: the name is not a token");
}

TEST(SetCookie, IsAddedToAResponse) {
  Response response;
  EXPECT_TRUE(set_cookie(response, {.name = "a", .value = "1"}));
  EXPECT_TRUE(set_cookie(response, {.name = "b", .value = "2"}));
  EXPECT_FALSE(set_cookie(response, {.name = "c;"}));
  EXPECT_EQ(response.headers().count(), 2U);
  EXPECT_EQ(response.invalid_header(), "");
}

TEST(SetCookie, IsRemovedByADateInThePast) {
  Response response;
  EXPECT_TRUE(remove_cookie(response, {.name = "a", .value = "1", .max_age = 5s, .path = "/app"}));
  EXPECT_EQ(
      response.headers().get("Set-Cookie"),
      "a=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/app; SameSite=Lax; Secure; "
      "HttpOnly");
}

}  // namespace
}  // namespace weir::http::set_cookie_test
