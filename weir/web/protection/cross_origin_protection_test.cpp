// Tests of the protection against forged requests.
#include "weir/web/protection/cross_origin_protection.hpp"

#include <gtest/gtest.h>

#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::cross_origin_protection_test {
namespace {

/// Returns the status of a request for example.org.
int status_of(Method method, HeaderList headers) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
  router.use(cross_origin_protection({.origins = {"https://app.test"}}));
  router.get("/", [] { return text("read"); });
  router.post("/", [] { return text("written"); });
  TestClient client(std::move(router));
  headers.emplace_back("Host", "example.org");
  return code_of(ask(client, method, "/", headers).status());
}

TEST(CrossOriginProtection, LetsReadersPass) {
  EXPECT_EQ(status_of(Method::get, {{"Origin", "https://evil.test"}}), 200);
  EXPECT_EQ(status_of(Method::get, {{"Sec-Fetch-Site", "cross-site"}}), 200);
  EXPECT_EQ(status_of(Method::head, {{"Sec-Fetch-Site", "cross-site"}}), 200);
}

TEST(CrossOriginProtection, TakesTheWordOfTheBrowser) {
  EXPECT_EQ(status_of(Method::post, {{"Sec-Fetch-Site", "same-origin"}}), 200);
  EXPECT_EQ(status_of(Method::post, {{"Sec-Fetch-Site", "none"}}), 200);
  for (const char* site : {"cross-site", "same-site", "", "SAME-ORIGIN"}) {
    EXPECT_EQ(status_of(Method::post, {{"Sec-Fetch-Site", site}}), 403) << site;
  }
  EXPECT_EQ(status_of(Method::post,
                      {{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://example.org"}}),
            403)
      << "it counts more than Origin";
}

TEST(CrossOriginProtection, ComparesTheOriginWithTheHost) {
  for (const char* origin :
       {"https://example.org", "http://EXAMPLE.org", "https://example.org:443"}) {
    EXPECT_EQ(status_of(Method::post, {{"Origin", origin}}), 200) << origin;
  }
  for (const char* origin :
       {"https://evil.test", "https://example.org.evil.test", "null", "https://a.example.org",
        "https://example.org:8443", "example.org", "file://example.org"}) {
    EXPECT_EQ(status_of(Method::post, {{"Origin", origin}}), 403) << origin;
  }
  EXPECT_EQ(status_of(Method::post, {}), 200) << "no browser";
}

TEST(CrossOriginProtection, ChecksSafeMethodsByOption) {
  Router router;
  router.use(cross_origin_protection({.safe_methods = true}));
  router.get("/", [] { return text("read"); });
  TestClient client(std::move(router));
  const auto status = [&](HeaderList headers, Method method = Method::get) {
    headers.emplace_back("Host", "example.org");
    return code_of(ask(client, method, "/", headers).status());
  };
  EXPECT_EQ(status({}), 200) << "no browser";
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(status({{"Sec-Fetch-Site", site}}), 200) << site;
  }
  for (const char* site : {"cross-site", "same-site", ""}) {
    for (const Method method : {Method::get, Method::head, Method::options}) {
      EXPECT_EQ(status({{"Sec-Fetch-Site", site}}, method), 403) << site;
    }
  }
  EXPECT_EQ(status({{"Origin", "https://evil.test"}}), 403);
  EXPECT_EQ(status({{"Origin", "https://example.org"}}), 200);
}

// The image of a page has no Origin, and over plain HTTP to a name it has no Sec-Fetch-Site either.
TEST(CrossOriginProtection, ComparesTheRefererOfSafeMethods) {
  Router router;
  router.use(cross_origin_protection({.origins = {"https://app.test"}, .safe_methods = true}));
  router.get("/", [] { return text("read"); });
  router.post("/", [] { return text("written"); });
  TestClient client(std::move(router));
  const auto status = [&](HeaderList headers, Method method = Method::get) {
    headers.emplace_back("Host", "example.org");
    return code_of(ask(client, method, "/", headers).status());
  };
  for (const char* referer :
       {"http://example.org/", "http://example.org", "https://EXAMPLE.org:443/a?b=/://evil.test",
        "http://example.org?a", "https://app.test/page", ""}) {
    EXPECT_EQ(status({{"Referer", referer}}), 200) << referer;
  }
  for (const char* referer :
       {"http://evil.test/", "https://evil.test", "http://example.org.evil.test/",
        "http://example.org:81/", "http://evil.test/http://example.org/", "example.org", "/a",
        "http://example.org@evil.test/", "about:blank", "http://app.test/"}) {
    EXPECT_EQ(status({{"Referer", referer}}), 403) << referer;
    EXPECT_EQ(status({{"Referer", referer}}, Method::head), 403) << referer;
  }
  EXPECT_EQ(status({{"Referer", "http://evil.test/"}, {"Sec-Fetch-Site", "none"}}), 200);
  EXPECT_EQ(status({{"Referer", "http://evil.test/"}, {"Origin", "http://example.org"}}), 200);
  EXPECT_EQ(status({{"Referer", "http://example.org/"}, {"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(status({{"Referer", "http://example.org/"}, {"referer", "http://evil.test/"}}), 403);
  EXPECT_EQ(status({{"Referer", "http://evil.test/"}}, Method::post), 200)
      << "a browser sends Origin with a POST";
}

TEST(CrossOriginProtection, RefusesARepeatedHeader) {
  EXPECT_EQ(status_of(Method::post,
                      {{"Sec-Fetch-Site", "same-origin"}, {"sec-fetch-site", "cross-site"}}),
            403);
  EXPECT_EQ(
      status_of(Method::post, {{"Origin", "https://app.test"}, {"origin", "https://evil.test"}}),
      403);
  EXPECT_EQ(status_of(Method::get, {{"Origin", "https://evil.test"}, {"Origin", "null"}}), 200);
}

TEST(CrossOriginProtection, AllowsOtherSitesByAList) {
  EXPECT_EQ(
      status_of(Method::post, {{"Origin", "https://app.test"}, {"Sec-Fetch-Site", "cross-site"}}),
      200);
  EXPECT_EQ(status_of(Method::post, {{"Origin", "http://app.test"}}), 403);
}

TEST(CrossOriginProtection, KnowsTheHostThatAProxyNames) {
  EXPECT_EQ(status_of(Method::post,
                      {{"Origin", "https://public.test"}, {"X-Forwarded-Host", "public.test"}}),
            200);
  EXPECT_EQ(status_of(Method::post,
                      {{"Origin", "https://evil.test"}, {"X-Forwarded-Host", "public.test"}}),
            403);
}

}  // namespace
}  // namespace weir::http::cross_origin_protection_test
