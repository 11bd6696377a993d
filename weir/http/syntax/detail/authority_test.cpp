// Tests of the authority parser.
#include "weir/http/syntax/detail/authority.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

using std::string_view_literals::operator""sv;

TEST(Authority, SplitsHostAndPort) {
  const auto name = parse_authority("a.test:8080");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->host, "a.test");
  EXPECT_EQ(name->port, 8080);
  const auto literal = parse_authority("[2001:db8::1]:443");
  ASSERT_TRUE(literal);
  EXPECT_EQ(literal->host, "[2001:db8::1]");
  EXPECT_EQ(literal->port, 443);
  const auto bare = parse_authority("localhost");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->port.has_value());
}

TEST(Authority, AcceptsTextThatTheGrammarAllows) {
  for (auto text : {"a",
                    "a.test",
                    "A.TEST.",
                    "127.0.0.1",
                    "127.0.0.1:80",
                    "a_b.test",
                    "xn--caf-dma.test",
                    "a.test:",
                    "a.test:0",
                    "a.test:65535",
                    "a.test:00080",
                    "999.999.999.999",
                    "[::]",
                    "[::1]:80",
                    "[v1.fe80::a]",
                    "[vF.a:b]:1",
                    "caf%C3%A9.test",
                    "a!$&'()*+;=~b",
                    "%41.test",
                    "-",
                    "1"}) {
    EXPECT_TRUE(parse_authority(text)) << text;
  }
}

TEST(Authority, RejectsTextThatTheGrammarForbids) {
  for (auto text : {""sv,
                    ":"sv,
                    ":80"sv,
                    "a.test:65536"sv,
                    "a.test:99999999999999999999"sv,
                    "a.test:8a"sv,
                    "a.test:-1"sv,
                    "a.test:+1"sv,
                    "a.test:80:80"sv,
                    "a.test:80 "sv,
                    " a.test"sv,
                    "a test"sv,
                    "a.test, b.test"sv,
                    "a.test,b.test"sv,
                    "user@a.test"sv,
                    "user:pw@a.test"sv,
                    "a.test/"sv,
                    "a.test?x"sv,
                    "a.test#x"sv,
                    "a\\b"sv,
                    "a\"b"sv,
                    "<a>"sv,
                    "a{b}"sv,
                    "a|b"sv,
                    "a^b"sv,
                    "a`b"sv,
                    "a%"sv,
                    "a%4"sv,
                    "a%zz"sv,
                    "a%00"sv,
                    "a%0d%0a"sv,
                    "a%2fb"sv,
                    "a%40b"sv,
                    "a%3a80"sv,
                    "a%25b"sv,
                    "a%2Cb"sv,
                    "a%7f"sv,
                    "a%20b"sv,
                    "caf\xc3\xa9"sv,
                    "a\0b"sv,
                    "a\tb"sv,
                    "[]"sv,
                    "["sv,
                    "]"sv,
                    "[::1"sv,
                    "::1"sv,
                    "[::1]80"sv,
                    "[::1]:"
                    "x"sv,
                    "[::1%25eth0]"sv,
                    "[::1%eth0]"sv,
                    "[127.0.0.1]"sv,
                    "[a.test]"sv,
                    "[v.a]"sv,
                    "[v1.]"sv,
                    "[v1]"sv,
                    "[vg.a]"sv,
                    "[v1.a/b]"sv,
                    "[v1.a,b]"sv,
                    "[[::1]]"sv,
                    "a[::1]"sv}) {
    EXPECT_FALSE(parse_authority(text)) << text;
  }
}

TEST(Authority, RecognizesIpv4Addresses) {
  for (auto text : {"0.0.0.0", "255.255.255.255", "1.20.100.9"}) {
    EXPECT_TRUE(is_ipv4_address(text)) << text;
  }
  for (auto text : {"", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.1.1.1", "1.1.1.00", "1..1.1",
                    "1.1.1.", ".1.1.1", "1.1.1.1 ", "1.1.1.1000", "a.1.1.1"}) {
    EXPECT_FALSE(is_ipv4_address(text)) << text;
  }
}

TEST(Authority, RecognizesIpv6Addresses) {
  for (auto text : {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
                    "1::8", "2001:DB8::8:800:200C:417A", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
                    "1::5:1.2.3.4", "::1.2.3.4", "fe80::1:2"}) {
    EXPECT_TRUE(is_ipv6_address(text)) << text;
  }
  for (auto text : {"",
                    ":",
                    ":::",
                    "1",
                    "1:2:3:4:5:6:7",
                    "1:2:3:4:5:6:7:8:9",
                    "1::2::3",
                    "1:2:3:4:5:6:7:8::",
                    "::1:2:3:4:5:6:7:8",
                    "1:",
                    ":1",
                    "12345::",
                    "g::",
                    "1:2:3:4:5:6:7:1.2.3.4",
                    "::1.2.3",
                    "::1.2.3.4:5",
                    "::1.2.3.256",
                    "1:::2",
                    "1.2.3.4",
                    "::1 ",
                    "::%31"}) {
    EXPECT_FALSE(is_ipv6_address(text)) << text;
  }
}

}  // namespace
}  // namespace weir::http
