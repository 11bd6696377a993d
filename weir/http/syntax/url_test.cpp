// Tests of URLs: what is accepted, how it is normalized, and how references are resolved.
#include "weir/http/syntax/url.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>

#include "weir/http/syntax/parse_error.hpp"

namespace weir::http::url_test {
namespace {

Url url_of(std::string_view text) {
  Result<Url> url = Url::parse(text);
  if (!url) ADD_FAILURE() << text << ": " << url.error().message();
  return url ? *url : *Url::parse("http://invalid.test");
}

std::error_code error_of(std::string_view text) {
  const Result<Url> url = Url::parse(text);
  return url ? std::error_code() : url.error();
}

/// Returns the text of the resolved reference, or the name of the error.
std::string resolved(std::string_view base, std::string_view reference) {
  const Result<Url> url = url_of(base).resolve(reference);
  return url ? std::string(url->text()) : url.error().message();
}

TEST(Url, HasParts) {
  const Url url = url_of("http://example.test:8080/a/b%20c?q=1&r=?/");
  EXPECT_EQ(url.scheme(), "http");
  EXPECT_EQ(url.host(), "example.test");
  EXPECT_EQ(url.port(), 8080);
  EXPECT_EQ(url.authority(), "example.test:8080");
  EXPECT_EQ(url.origin(), "http://example.test:8080");
  EXPECT_EQ(url.path(), "/a/b%20c");
  EXPECT_TRUE(url.has_query());
  EXPECT_EQ(url.query(), "q=1&r=?/");
  EXPECT_EQ(url.target(), "/a/b%20c?q=1&r=?/");
  EXPECT_EQ(url.text(), "http://example.test:8080/a/b%20c?q=1&r=?/");
}

TEST(Url, HasTheDefaultPortOfItsScheme) {
  EXPECT_EQ(url_of("http://a").port(), 80);
  EXPECT_EQ(url_of("https://a").port(), 443);
  EXPECT_EQ(url_of("https://a").scheme(), "https");
  EXPECT_EQ(url_of("https://a").authority(), "a");
}

TEST(Url, JoinsAnotherPath) {
  const auto joined = [](std::string_view base, std::string_view path,
                         std::optional<std::string_view> query = std::nullopt) {
    const Result<Url> url = url_of(base).join(path, query);
    return url ? std::string(url->text()) : url.error().message();
  };
  EXPECT_EQ(joined("http://a", "/b"), "http://a/b");
  EXPECT_EQ(joined("https://a:8/v1/?dropped", "/b%20c", "q=?/"), "https://a:8/v1/b%20c?q=?/");
  EXPECT_EQ(joined("http://a/v1", "", ""), "http://a/v1/?");
  const Url url = *url_of("http://[::1]:8/v1").join("/b", "q");
  EXPECT_EQ(url, url_of("http://[::1]:8/v1/b?q"));
  EXPECT_EQ(url.host(), "::1");
  EXPECT_EQ(url.port(), 8);
  EXPECT_EQ(url.path(), "/v1/b");
  EXPECT_EQ(url.query(), "q");
  const std::string most(Url::bytes_max, 'x');
  EXPECT_EQ(joined("http://a", "/" + most), "http://a/" + most) << "the server has limited it";
}

TEST(Url, IsNormalized) {
  EXPECT_EQ(url_of("HTTP://EXAMPLE.Test/Path?Query").text(), "http://example.test/Path?Query");
  EXPECT_EQ(url_of("http://a").text(), "http://a/");
  EXPECT_EQ(url_of("http://a?q").text(), "http://a/?q");
  EXPECT_EQ(url_of("http://a:80/").text(), "http://a/");
  EXPECT_EQ(url_of("https://a:443/").text(), "https://a/");
  EXPECT_EQ(url_of("http://a:443/").text(), "http://a:443/");
  EXPECT_EQ(url_of("https://a:80/").text(), "https://a:80/");
  EXPECT_EQ(url_of("http://a:/").text(), "http://a/");
  EXPECT_EQ(url_of("http://a:0081/").text(), "http://a:81/");
  EXPECT_EQ(url_of("http://[FE80::1]:81").text(), "http://[fe80::1]:81/");
  EXPECT_EQ(url_of("http://[2001:0DB8:0:0:0:0:0:1]/").text(), "http://[2001:db8::1]/");
  EXPECT_EQ(url_of("http://[::FFFF:7F00:1]/").text(), "http://[::ffff:127.0.0.1]/");
  EXPECT_EQ(url_of("http://[::1]/").text(), "http://[::1]/");
  EXPECT_EQ(url_of("http://[v1.A:b]/").text(), "http://[v1.a:b]/");
  EXPECT_EQ(url_of("https://A.test.:443/").authority(), "a.test.");
  EXPECT_EQ(url_of("http://A:80"), url_of("http://a/"));
  EXPECT_NE(url_of("http://a/"), url_of("https://a/"));
  EXPECT_NE(url_of("http://a/"), url_of("http://a/?"));
}

TEST(Url, DistinguishesAnEmptyQueryFromNone) {
  EXPECT_FALSE(url_of("http://a/").has_query());
  EXPECT_EQ(url_of("http://a/").query(), "");
  EXPECT_TRUE(url_of("http://a/?").has_query());
  EXPECT_EQ(url_of("http://a/?").query(), "");
  EXPECT_EQ(url_of("http://a/?").target(), "/?");
}

TEST(Url, LeavesOutTheBracketsOfAnAddressOnlyInTheHost) {
  const Url url = url_of("http://[2001:db8::1]:8080/");
  EXPECT_EQ(url.host(), "2001:db8::1");
  EXPECT_EQ(url.authority(), "[2001:db8::1]:8080");
  EXPECT_EQ(url_of("http://127.0.0.1/").host(), "127.0.0.1");
}

TEST(Url, DropsTheFragment) {
  EXPECT_EQ(url_of("http://a/b?c#d/e?f%20").text(), "http://a/b?c");
  EXPECT_EQ(url_of("http://a#").text(), "http://a/");
  EXPECT_EQ(url_of("http://a#@b").host(), "a");
  EXPECT_EQ(error_of("http://a/#b#c"), ParseError::bad_target);
  EXPECT_EQ(error_of("http://a/#b c"), ParseError::bad_target);
  EXPECT_EQ(error_of("http://a/#%4"), ParseError::bad_escape);
}

TEST(Url, RejectsWhatIsNoUrlWithItsReason) {
  for (const std::string_view text : {"ftp://a/", "mailto:a", "file:///a", "httpx://a", "urn:a"}) {
    EXPECT_EQ(error_of(text), Errc::unsupported) << text;
  }
  for (const std::string_view text :
       {"", "a", "/a", "//a/", "?q", "#", "*", ":", "://a", "1http://a", " http://a", "ht tp://a",
        "http:", "http:a", "http:/a", "a/b:c", "a_b://c"}) {
    EXPECT_EQ(error_of(text), ParseError::bad_target_form) << text;
  }
  for (const std::string_view text : {"http://",
                                      "http:///a",
                                      "http://?q",
                                      "http://:80/",
                                      "http://user@a/",
                                      "http://u:p@a/",
                                      "http://@a/",
                                      "http://a:0/",
                                      "http://a:65536/",
                                      "http://a:8x/",
                                      "http://a:-1/",
                                      "http://a b/",
                                      "http://a\\b/",
                                      "http://[::1",
                                      "http://[::g]/",
                                      "http://[::1]a/",
                                      "http://[fe80::1%25eth0]/",
                                      "http://%61/",
                                      "http://a,b/",
                                      "http://\xc3\xa4/"}) {
    EXPECT_EQ(error_of(text), ParseError::bad_target_authority) << text;
  }
  for (const std::string_view text : {"http://a/ ", "http://a/b c", "http://a/\r\n", "http://a/\"",
                                      "http://a/\\b", "http://a/?<", "http://a/\xc3\xa4"}) {
    EXPECT_EQ(error_of(text), ParseError::bad_target) << text;
  }
  EXPECT_EQ(error_of("http://a/%"), ParseError::bad_escape);
  EXPECT_EQ(url_of("http://a/[b]?c[]={d}|\\%g0").text(), "http://a/[b]?c[]={d}|\\%g0");
  EXPECT_EQ(error_of("http://a/%00"), ParseError::nul_escape);
  EXPECT_EQ(error_of("http://a/b/../c"), ParseError::dot_segment);
  EXPECT_EQ(error_of("http://a/%2e%2E/c"), ParseError::dot_segment);
}

TEST(Url, HasAtMostItsLimit) {
  const std::string start = "http://a/";
  const std::string longest = start + std::string(Url::bytes_max - start.size(), 'p');
  EXPECT_EQ(url_of(longest).text(), longest);
  EXPECT_EQ(error_of(longest + "p"), Errc::limit_reached);
  // The resolved text has the limit, too.
  EXPECT_EQ(resolved(longest, "?q"), make_error_code(Errc::limit_reached).message());
  EXPECT_EQ(resolved("http://a/", std::string(Url::bytes_max + 1, 'p')),
            make_error_code(Errc::limit_reached).message());
  EXPECT_EQ(resolved("http://b/c", longest), longest);
}

TEST(Url, MayHaveAnotherLimit) {
  const std::string text = "http://a/" + std::string(20'000, 'p');
  const auto longer = Url::parse(text, text.size());
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->text(), text);
  EXPECT_EQ(Url::parse(text, text.size() - 1).error(), Errc::limit_reached);
  EXPECT_EQ(Url::parse("http://a/", 8).error(), Errc::limit_reached);
  EXPECT_EQ(longer->resolve("q").value().text(), "http://a/q");
  EXPECT_EQ(longer->resolve("#f").value(), *longer);
  EXPECT_EQ(longer->resolve("?q").error(), Errc::limit_reached);
}

/// The examples of RFC 3986 §5.4 that stay inside http, with its base in scheme http. Fragments
/// are dropped.
TEST(Url, ResolvesTheExamplesOfTheRfc) {
  struct Example {
    std::string_view reference;
    std::string_view resolved;
  };
  constexpr Example examples[] = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {"g?y#s", "http://a/b/c/g?y"},
      {";x", "http://a/b/c/;x"},
      {"g;x", "http://a/b/c/g;x"},
      {"g;x?y#s", "http://a/b/c/g;x?y"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"../../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {".g", "http://a/b/c/.g"},
      {"g..", "http://a/b/c/g.."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"g#s/../x", "http://a/b/c/g"},
  };
  for (const Example& each : examples) {
    EXPECT_EQ(resolved("http://a/b/c/d;p?q", each.reference), each.resolved) << each.reference;
  }
}

TEST(Url, ResolvesReferencesWithAnOriginOfTheirOwn) {
  EXPECT_EQ(resolved("http://a:81/b?q", "https://C:82"), "https://c:82/");
  EXPECT_EQ(resolved("http://a:81/b?q", "HTTP://c?r"), "http://c/?r");
  EXPECT_EQ(resolved("http://a:81/b", "https://c/d/../e/./f"), "https://c/e/f");
  EXPECT_EQ(resolved("https://a/b", "//c:443/d"), "https://c/d");
  EXPECT_EQ(resolved("https://a:81/b", "c"), "https://a:81/c");
  EXPECT_EQ(resolved("http://[::1]:81/b", "?"), "http://[::1]:81/b?");
  EXPECT_EQ(resolved("http://a/b?q", "?#s"), "http://a/b?");
  EXPECT_EQ(resolved("http://a/b//c/d", "../e"), "http://a/b//e");
  EXPECT_EQ(resolved("http://a/b", "/c//d/../e"), "http://a/c//e");
  EXPECT_EQ(resolved("http://a/b", ".//c"), "http://a//c");
}

TEST(Url, RejectsReferencesWithTheirReason) {
  const auto name = [](ParseError error) { return std::string(name_of(error)); };
  const std::string unsupported = make_error_code(Errc::unsupported).message();
  EXPECT_EQ(resolved("http://a/b", "ftp://c/"), unsupported);
  EXPECT_EQ(resolved("http://a/b", "javascript:c"), unsupported);
  EXPECT_EQ(resolved("http://a/b", "http:c"), name(ParseError::bad_target_form));
  EXPECT_EQ(resolved("http://a/b", "1:2"), name(ParseError::bad_target_form));
  EXPECT_EQ(resolved("http://a/b", ":c"), name(ParseError::bad_target_form));
  EXPECT_EQ(resolved("http://a/b", "./1:2"), "http://a/1:2");
  EXPECT_EQ(resolved("http://a/b", "//"), name(ParseError::bad_target_authority));
  EXPECT_EQ(resolved("http://a/b", "///c"), name(ParseError::bad_target_authority));
  EXPECT_EQ(resolved("http://a/b", "//user@c/"), name(ParseError::bad_target_authority));
  EXPECT_EQ(resolved("http://a/b", "/c d"), name(ParseError::bad_target));
  EXPECT_EQ(resolved("http://a/b", "\\\\c"), name(ParseError::bad_target));
  EXPECT_EQ(resolved("http://a/b", "/c\r\nSet-Cookie: d"), name(ParseError::bad_target));
  EXPECT_EQ(resolved("http://a/b", "#%"), name(ParseError::bad_escape));
  EXPECT_EQ(resolved("http://a/b", "%2e%2e/c"), name(ParseError::dot_segment));
  EXPECT_EQ(resolved("http://a/b", "c/.%2e"), name(ParseError::dot_segment));
}

TEST(Url, ComparesOrigins) {
  EXPECT_EQ(url_of("http://a/b").origin(), url_of("HTTP://A:80/c?d").origin());
  EXPECT_NE(url_of("http://a/").origin(), url_of("https://a/").origin());
  EXPECT_NE(url_of("http://a/").origin(), url_of("http://a:81/").origin());
  EXPECT_NE(url_of("http://a/").origin(), url_of("http://a.b/").origin());
}

}  // namespace
}  // namespace weir::http::url_test
