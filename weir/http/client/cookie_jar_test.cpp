// Tests of the jar of cookies.
#include "weir/http/client/cookie_jar.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace weir::http::cookie_jar_test {
namespace {

using namespace std::chrono_literals;

constexpr WallTime now(1'000'000'000s);

class CookieJarTest : public testing::Test {
 protected:
  bool store(std::string_view url, std::string_view text, WallTime when = now) {
    return jar_.store(*Url::parse(url), text, when);
  }
  std::string header(std::string_view url, WallTime when = now) {
    return jar_.header_for(*Url::parse(url), when);
  }

  CookieJar jar_;
};

TEST_F(CookieJarTest, ACookieWithoutDomainReturnsToItsHostOnly) {
  EXPECT_TRUE(store("http://a.test/", "id=7"));
  EXPECT_EQ(header("http://a.test/"), "id=7");
  EXPECT_EQ(header("http://a.test:81/"), "id=7") << "ports do not separate cookies";
  EXPECT_EQ(header("http://b.a.test/"), "");
  EXPECT_EQ(header("http://test/"), "");
  EXPECT_EQ(header("http://xa.test/"), "");
}

TEST_F(CookieJarTest, ADomainIncludesTheHostsBelowIt) {
  EXPECT_TRUE(store("http://www.a.test/", "id=7; Domain=A.Test"));
  for (const std::string_view url :
       {"http://a.test/", "http://www.a.test/", "http://x.y.a.test/"}) {
    EXPECT_EQ(header(url), "id=7") << url;
  }
  for (const std::string_view url : {"http://xa.test/", "http://b.test/", "http://a.test.b/"}) {
    EXPECT_EQ(header(url), "") << url;
  }
}

TEST_F(CookieJarTest, DotAtTheEndOfAHostDoesNotCount) {
  EXPECT_TRUE(store("http://www.a.test./", "id=7; Domain=a.test"));
  EXPECT_TRUE(store("http://a.test/", "own=1"));
  EXPECT_EQ(header("http://a.test./"), "id=7; own=1");
  EXPECT_EQ(header("http://www.a.test/"), "id=7");
  EXPECT_FALSE(store("http://a.test./", "id=8; Domain=test"));
  EXPECT_TRUE(store("http://10.0.0.1./", "ip=9"));
  EXPECT_EQ(header("http://x.10.0.0.1/"), "");
}

TEST_F(CookieJarTest, AHostSetsNoCookieForOthers) {
  for (const std::string_view text :
       {"id=7; Domain=b.test", "id=7; Domain=x.a.test", "id=7; Domain=test", "id=7; Domain=.",
        "id=7; Domain=.test", "id=7; Domain=a.test.", "id=7; Domain=.test"}) {
    const bool is_dot = text.ends_with("=.");
    EXPECT_EQ(store("http://a.test/", text), is_dot) << text;
    EXPECT_EQ(header("http://b.test/"), "") << text;
  }
  EXPECT_FALSE(store("http://10.0.0.1/", "id=7; Domain=0.0.1"));
  EXPECT_TRUE(store("http://10.0.0.1/", "id=7; Domain=10.0.0.1"));
  EXPECT_EQ(header("http://10.0.0.1/"), "id=7");
  EXPECT_TRUE(store("http://localhost/", "id=7; Domain=localhost"));
  EXPECT_EQ(header("http://localhost/"), "id=7");
  EXPECT_EQ(header("http://x.localhost/"), "") << "a domain without a dot is its host only";
  EXPECT_TRUE(store("http://[::1]/", "id=7"));
  EXPECT_EQ(header("http://[::1]/"), "id=7");
}

TEST_F(CookieJarTest, PathsLimitCookies) {
  EXPECT_TRUE(store("http://a.test/dir/page", "one=1"));
  EXPECT_TRUE(store("http://a.test/dir/page", "two=2; Path=/dir/page"));
  EXPECT_TRUE(store("http://a.test/dir/page", "root=3; Path=/"));
  EXPECT_TRUE(store("http://a.test/page", "top=4"));
  EXPECT_TRUE(store("http://a.test/", "slash=5; Path=/dir/"));
  EXPECT_EQ(header("http://a.test/dir/page?q"), "two=2; slash=5; one=1; root=3; top=4");
  EXPECT_EQ(header("http://a.test/dir/page/x"), "two=2; slash=5; one=1; root=3; top=4");
  EXPECT_EQ(header("http://a.test/dir/pages"), "slash=5; one=1; root=3; top=4");
  EXPECT_EQ(header("http://a.test/dir"), "one=1; root=3; top=4");
  EXPECT_EQ(header("http://a.test/director"), "root=3; top=4");
}

TEST_F(CookieJarTest, ALaterCookieReplacesAnEarlierOneOfItsNameDomainAndPath) {
  EXPECT_TRUE(store("http://a.test/", "id=1"));
  EXPECT_TRUE(store("http://a.test/", "x=1"));
  EXPECT_TRUE(store("http://a.test/", "id=2"));
  EXPECT_EQ(header("http://a.test/"), "id=2; x=1") << "it keeps its place";
  EXPECT_TRUE(store("http://a.test/", "id=3; Domain=a.test"));
  EXPECT_EQ(header("http://a.test/"), "id=2; x=1; id=3") << "another domain is another cookie";
  EXPECT_TRUE(store("http://a.test/", "id=; Max-Age=0"));
  EXPECT_EQ(header("http://a.test/"), "x=1; id=3");
  EXPECT_EQ(jar_.size(), 2U);
  jar_.clear();
  EXPECT_EQ(header("http://a.test/"), "");
}

TEST_F(CookieJarTest, CookiesExpire) {
  EXPECT_TRUE(store("http://a.test/", "age=1; Max-Age=10; Expires=Sun, 06 Nov 1994 08:49:37 GMT"));
  EXPECT_TRUE(store("http://a.test/", "date=1; Expires=Sun, 09 Sep 2001 01:46:50 GMT"));
  EXPECT_TRUE(store("http://a.test/", "long=1; Max-Age=999999999"));
  EXPECT_TRUE(store("http://a.test/", "past=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT"));
  EXPECT_TRUE(store("http://a.test/", "none=1"));
  EXPECT_EQ(header("http://a.test/", now + 9s), "age=1; date=1; long=1; none=1");
  EXPECT_EQ(header("http://a.test/", now + 10s), "long=1; none=1");
  EXPECT_EQ(header("http://a.test/", now + std::chrono::days(400)), "none=1");
  EXPECT_EQ(jar_.size(), 4U);
  EXPECT_TRUE(store("http://a.test/", "next=1", now + 10s));
  EXPECT_EQ(jar_.size(), 3U) << "a new cookie drops those that have expired";
}

TEST_F(CookieJarTest, SecureCookiesNeedHttps) {
  EXPECT_FALSE(store("http://a.test/", "id=1; Secure"));
  EXPECT_TRUE(store("https://a.test/", "id=1; Secure"));
  EXPECT_EQ(header("http://a.test/"), "");
  EXPECT_EQ(header("https://a.test/"), "id=1");
  EXPECT_FALSE(store("http://a.test/", "id=2")) << "it would replace a secure cookie";
  EXPECT_EQ(header("https://a.test/"), "id=1");
}

// Whoever is between the client and a plain server could otherwise choose the session of a secure
// one.
TEST_F(CookieJarTest, APlainResponseSetsNothingBeforeASecureCookie) {
  ASSERT_TRUE(store("https://shop.example/", "sid=good; Secure; Path=/app"));
  for (const auto& [url, cookie] : {
           std::pair("http://shop.example/", "sid=evil; Path=/app"),
           std::pair("http://shop.example/", "sid=evil; Path=/app/account"),
           std::pair("http://www.shop.example/", "sid=evil; Domain=shop.example; Path=/app/x"),
           std::pair("http://www.shop.example/", "sid=evil; Path=/app"),
           std::pair("http://example/", "sid=evil; Path=/app"),
           std::pair("http://shop.example/app/x/y", "sid=evil"),
           std::pair("http://shop.example/", "sid=evil; Path=/app; Max-Age=0"),
       }) {
    EXPECT_FALSE(store(url, cookie)) << url << cookie;
  }
  EXPECT_EQ(header("https://shop.example/app/account"), "sid=good");
  EXPECT_EQ(header("https://shop.example/app/x/y"), "sid=good");
  for (const auto& [url, cookie] : {
           std::pair("http://shop.example/", "sid=short; Path=/"),
           std::pair("http://shop.example/", "sid=other; Path=/application"),
           std::pair("http://shop.example/", "SID=name; Path=/app"),
           std::pair("http://xshop.example/", "sid=host; Path=/app"),
           std::pair("https://shop.example/", "sid=own; Path=/app/y"),
       }) {
    EXPECT_TRUE(store(url, cookie)) << url << cookie;
  }
  EXPECT_EQ(header("https://shop.example/app"), "sid=good; SID=name; sid=short");
}

TEST_F(CookieJarTest, APlainResponseHidesNoSecureCookieOfAParent) {
  ASSERT_TRUE(store("https://www.shop.example/",
                    "sid=good; Secure; Domain=shop.example; Path=/; Max-Age=60"));
  EXPECT_FALSE(store("http://a.b.shop.example/", "sid=evil; Path=/x"));
  EXPECT_FALSE(store("http://shop.example/", "sid=evil; Path=/x"));
  EXPECT_TRUE(store("http://shop.example/", "sid=late; Path=/x", now + 61s))
      << "the Secure one has expired";
}

TEST_F(CookieJarTest, PlainCookiesDisplaceNoSecureOnes) {
  CookieJar jar({.cookies_max = 3, .cookies_per_domain_max = 2});
  const auto store_in = [&](std::string_view url, std::string_view text) {
    return jar.store(*Url::parse(url), text, now);
  };
  EXPECT_TRUE(store_in("https://a.test/", "sid=good; Secure"));
  for (const char* text : {"a=1", "b=1", "c=1"}) EXPECT_TRUE(store_in("http://a.test/", text));
  EXPECT_EQ(jar.header_for(*Url::parse("https://a.test/"), now), "sid=good; c=1");
  EXPECT_TRUE(store_in("http://b.test/", "d=1"));
  EXPECT_TRUE(store_in("http://c.test/", "e=1"));
  EXPECT_EQ(jar.size(), 3U);
  EXPECT_TRUE(jar.header_for(*Url::parse("https://a.test/"), now).starts_with("sid=good"));
}

TEST_F(CookieJarTest, PrefixesOfNamesAreKept) {
  EXPECT_FALSE(store("https://a.test/", "__Secure-id=1"));
  EXPECT_TRUE(store("https://a.test/", "__secure-id=1; Secure"));
  EXPECT_FALSE(store("https://a.test/", "__Host-id=1; Secure"));
  EXPECT_FALSE(store("https://a.test/", "__Host-id=1; Secure; Path=/; Domain=a.test"));
  EXPECT_FALSE(store("https://a.test/", "__Host-id=1; Path=/"));
  EXPECT_TRUE(store("https://a.test/", "__Host-id=1; Secure; Path=/"));
  EXPECT_FALSE(store("http://a.test/", "__Host-id=1; Secure; Path=/"));
}

TEST_F(CookieJarTest, LimitsDropTheCookieThatWasNotUsedForTheLongestTime) {
  jar_ = CookieJar({.cookies_max = 4, .cookies_per_domain_max = 2});
  EXPECT_TRUE(store("http://a.test/", "one=1"));
  EXPECT_TRUE(store("http://a.test/x/", "two=2"));
  EXPECT_EQ(header("http://a.test/"), "one=1");
  EXPECT_TRUE(store("http://a.test/", "three=3"));
  EXPECT_EQ(header("http://a.test/x/"), "one=1; three=3") << "the domain has its limit";
  EXPECT_TRUE(store("http://b.test/", "b=1"));
  EXPECT_TRUE(store("http://c.test/", "c=1"));
  EXPECT_EQ(header("http://b.test/"), "b=1");
  EXPECT_TRUE(store("http://d.test/", "d=1"));
  EXPECT_EQ(jar_.size(), 4U);
  EXPECT_EQ(header("http://a.test/"), "three=3");
  jar_ = CookieJar({.cookies_max = 0});
  EXPECT_FALSE(store("http://a.test/", "one=1"));
  EXPECT_EQ(jar_.size(), 0U);
}

TEST_F(CookieJarTest, LongCookiesAreIgnoredAndHeadersAreBounded) {
  jar_ = CookieJar({.cookie_bytes_max = 40, .header_bytes_max = 20});
  EXPECT_FALSE(store("http://a.test/", "a=" + std::string(39, 'x')));
  EXPECT_FALSE(store("http://a.test/" + std::string(40, 'p') + "/", "a=1"));
  EXPECT_TRUE(store("http://a.test/", "root=45678901"));
  EXPECT_TRUE(store("http://a.test/p/", "path=45678901"));
  EXPECT_EQ(header("http://a.test/p/"), "path=45678901") << "two of them have 28 bytes";
}

TEST(CookieMemoryBound, CountsCookies) {
  CookieLimits limits;
  const std::uint64_t bound = memory_bound(limits);
  EXPECT_GT(bound, limits.cookies_max * limits.cookie_bytes_max);
  EXPECT_LT(bound, 3 * limits.cookies_max * limits.cookie_bytes_max);
  limits.cookie_bytes_max = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(memory_bound(limits), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace weir::http::cookie_jar_test
