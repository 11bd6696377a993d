// Tests of the grammar of Forwarded and X-Forwarded-For.
#include "weir/web/middleware/detail/forwarded.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"

namespace weir::http::forwarded_test {
namespace {

/// Returns the elements of the headers called X as "c|b|a|".
std::string elements(std::string_view lines) {
  const TextRequest request("GET /", {}, lines);
  LastElements list(request.head(), "X");
  std::string text;
  while (const auto each = list.next()) text.append(*each).append("|");
  return text;
}

TEST(LastElements, BeginWithTheLast) {
  EXPECT_EQ(elements(""), "");
  EXPECT_EQ(elements("X: a\r\n"), "a|");
  EXPECT_EQ(elements("X: a, b ,c\r\n"), "c|b|a|");
  EXPECT_EQ(elements("X: a, b\r\nY: z\r\nx: c,\td\r\n"), "d|c|b|a|");
  EXPECT_EQ(elements("X: ,, a,, b ,\r\nX:\r\n"), "b|a|");
}

TEST(LastElements, ACommaInQuotesIsNoSeparator) {
  EXPECT_EQ(elements("X: a=\"1,2\", b\r\n"), "b|a=\"1,2\"|");
  EXPECT_EQ(elements("X: a, b=\"1,2\"\r\n"), "b=\"1,2\"|a|");
}

TEST(LastElements, AnOpenQuoteHidesNothingOnItsRight) {
  EXPECT_EQ(elements("X: for=\"a, for=b, for=c\r\n"), "for=c|for=b|for=\"a|");
  EXPECT_EQ(elements("X: for=\"a\r\nX: for=c\r\n"), "for=c|for=\"a|");
}

/// Returns the parts as "client|scheme|host"; "-" for a malformed element.
std::string parts(std::string_view text) {
  const auto element = parse_forwarded(text);
  if (!element) return "-";
  return std::string(element->client) + "|" + std::string(element->scheme) + "|" +
         std::string(element->host);
}

TEST(ForwardedElement, HasItsParts) {
  EXPECT_EQ(parts("for=192.0.2.60;proto=http;by=203.0.113.43"), "192.0.2.60|http|");
  EXPECT_EQ(parts("For=\"[2001:db8:cafe::17]:4711\""), "[2001:db8:cafe::17]:4711||");
  EXPECT_EQ(parts("host=\"a.test:80\"; Proto=https ;FOR=_hidden"), "_hidden|https|a.test:80");
  EXPECT_EQ(parts("for=unknown"), "unknown||");
  EXPECT_EQ(parts(";for=a;;"), "a||");
  EXPECT_EQ(parts("secret=\"x;for=b\";for=a"), "a||");
  EXPECT_EQ(parts(""), "||");
}

TEST(ForwardedElement, IsRejectedIfItIsMalformed) {
  for (const char* text :
       {"for", "for=", "=a", "for =a", "for= a", "for=a proto=b", "for=\"a", "for=a\"", "for=[::1]",
        "for=a:1", "for=\"a\\\"b\"", "for=a;for=b", "for=\"\"", "for=a,b", "for=a;x=", "for=a;?"}) {
    EXPECT_EQ(parts(text), "-") << text;
  }
}

std::string node(std::string_view text) {
  const auto address = parse_node(text);
  return address ? address->to_string() : "-";
}

TEST(ForwardedNode, IsAnAddress) {
  EXPECT_EQ(node("192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(node("192.0.2.1:4711"), "192.0.2.1:4711");
  EXPECT_EQ(node("2001:db8::1"), "[2001:db8::1]:0");
  EXPECT_EQ(node("[2001:db8::1]"), "[2001:db8::1]:0");
  EXPECT_EQ(node("[2001:db8::1]:65535"), "[2001:db8::1]:65535");
  EXPECT_EQ(node("::ffff:192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(node("::1"), "[::1]:0");
}

TEST(ForwardedNode, IsNothingElse) {
  for (const char* text :
       {"", "unknown", "_hidden", "a.test", "192.0.2", "192.0.2.1:", "192.0.2.1:65536",
        "192.0.2.1:-1", "192.0.2.1:1a", "[192.0.2.1]", "[::1", "::1]", "[::1]1", "[::1]:", "[]",
        "192.0.2.1 ", "0x7f.1", "::1%eth0", "1:2"}) {
    EXPECT_EQ(node(text), "-") << text;
  }
}

}  // namespace
}  // namespace weir::http::forwarded_test
