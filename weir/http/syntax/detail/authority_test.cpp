// Tests of the authority parser.
#include "weir/http/syntax/detail/authority.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::http::authority_test {
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

TEST(Authority, ReturnsTheHostAndThePortOfEveryForm) {
  struct Case {
    std::string_view text;
    std::string_view host;
    std::optional<std::uint16_t> port;
  };
  for (const Case& each :
       std::initializer_list<Case>{{"a", "a", std::nullopt},
                                   {"a:", "a", std::nullopt},
                                   {"a:0", "a", 0},
                                   {"a:00", "a", 0},
                                   {"a:1", "a", 1},
                                   {"a:80", "a", 80},
                                   {"a:00080", "a", 80},
                                   {"a:65535", "a", 65535},
                                   {"a:000000065535", "a", 65535},
                                   {"127.0.0.1:8080", "127.0.0.1", 8080},
                                   {"a%C3%A9b:9", "a%C3%A9b", 9},
                                   {"%ff%80:9", "%ff%80", 9},
                                   {"%41%7e.b", "%41%7e.b", std::nullopt},
                                   {"[::]", "[::]", std::nullopt},
                                   {"[::]:", "[::]", std::nullopt},
                                   {"[1:2:3:4:5:6:7:8]:443", "[1:2:3:4:5:6:7:8]", 443},
                                   {"[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]", 5},
                                   {"[v1.a]:7", "[v1.a]", 7},
                                   {"[V1aF.a:b;c=~]", "[V1aF.a:b;c=~]", std::nullopt}}) {
    const auto authority = parse_authority(each.text);
    ASSERT_TRUE(authority) << each.text;
    EXPECT_EQ(authority->host, each.host);
    EXPECT_EQ(authority->port, each.port) << each.text;
  }
}

TEST(Authority, BelongsToThePagesOfItsHost) {
  for (const auto& [origin, authority] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"https://a.test", "a.test"},
           {"https://a.test", "A.test:443"},
           {"https://a.test.", "a.test"},
           {"http://a.test", "a.test.:80"},
           {"http://a.test:8080", "a.test.:8080"},
           {"http://[::1]", "[0:0:0:0:0:0:0:1]"},
           {"http://[::ffff:127.0.0.1]", "127.0.0.1"}}) {
    EXPECT_TRUE(is_same_host(origin, authority, false)) << origin << " " << authority;
  }
  for (const auto& [origin, authority] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"https://a.test", "b.test"},
           {"https://a.test", "a.test:80"},
           {"https://a.test..", "a.test"},
           {"https://a.test", "xa.test"},
           {"ftp://a.test", "a.test"},
           {"null", "a.test"},
           {"http://[::1]", "[::2]"},
           {"http://[::ffff:127.0.0.1]", "127.0.0.2"}}) {
    EXPECT_FALSE(is_same_host(origin, authority, false)) << origin << " " << authority;
  }
}

TEST(Authority, OriginsHaveSchemeHostAndPort) {
  EXPECT_TRUE(is_same_origin("https://a.test", "https://A.test.:443"));
  EXPECT_TRUE(is_same_origin("http://[::1]:80", "http://[0::1]"));
  EXPECT_TRUE(is_same_origin("app://x", "app://x"));
  EXPECT_TRUE(is_same_origin("null", "null"));
  EXPECT_FALSE(is_same_origin("https://a.test", "http://a.test"));
  EXPECT_FALSE(is_same_origin("https://a.test", "https://a.test:8443"));
  EXPECT_FALSE(is_same_origin("https://a.test", "https://b.test"));
  EXPECT_FALSE(is_same_origin("app://x", "app://x."));
}

TEST(Authority, MayLeaveTheDefaultPortOut) {
  EXPECT_TRUE(is_same_authority("a.test", "A.test.:443", 443));
  EXPECT_TRUE(is_same_authority("a.test:", "a.test:80", 80));
  EXPECT_TRUE(is_same_authority("a.test:8080", "a.test:8080", 80));
  EXPECT_TRUE(is_same_authority("[::1]", "[0:0::1]:80", 80));
  EXPECT_TRUE(is_same_authority("no authority", "NO authority", 80));
  EXPECT_FALSE(is_same_authority("a.test", "a.test:443", 80));
  EXPECT_FALSE(is_same_authority("a.test", "b.test", 80));
  EXPECT_FALSE(is_same_authority("a.test", "no authority", 80));
}

TEST(Authority, RejectsLiteralsAndEscapesThatAreAlmostValid) {
  for (const std::string_view text :
       {"[x1.a]",   "[1v.a]",    "[va]",         "[v1a]",
        "[v1x.a]",  "[vxA.a]",   "[v..a]",       "[v1.a%41]",
        "[v1.]:1",  "[.a]",      "[v.]",         "[v1.a]b",
        "[v1.a]]",  "[v1.a",     "[::1]]",       "[::1]:65536",
        "[::1]a:1", "%41%",      "%41%4",        "%41%4g",
        "%g1",      "%1g",       "a%1f",         "a%5b",
        "a%5D",     "a%3F",      "a%23",         "a%5c",
        "a:%31",    "a:1%31",    "a%5g",         "a%8g",
        "a%9g",     "a%Ag",      "[:80",         "[]:80",
        "u@41",     "u@ab.test", "a/41",         "a 41",
        "a[41",     "a:655350",  "a:4294967376", "a:18446744073709551696"}) {
    EXPECT_FALSE(parse_authority(text)) << text;
  }
}

TEST(Authority, AcceptsOnlyHarmlessEscapes) {
  const std::string_view marks = "-._~!$&'()*+;=";
  const std::string_view digits = "0123456789abcdef";
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string text = {'x', '%', digits[byte / 16], digits[byte % 16]};
    const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    const bool plain = letter || (byte >= '0' && byte <= '9') ||
                       (byte < 0x80 && marks.find(static_cast<char>(byte)) != marks.npos);
    EXPECT_EQ(parse_authority(text).has_value(), byte >= 0x80 || plain) << text;
  }
}

TEST(Authority, Ipv4OctetsAreDecimalNumbersUpTo255) {
  for (int octet = 0; octet <= 1000; ++octet) {
    const std::string text = std::to_string(octet);
    for (const std::string& address :
         {text + ".1.1.1", "1." + text + ".1.1", "1.1." + text + ".1", "1.1.1." + text}) {
      EXPECT_EQ(is_ipv4_address(address), octet <= 255) << address;
    }
    if (octet < 10) {
      EXPECT_FALSE(is_ipv4_address("0" + text + ".1.1.1"));
    }
  }
  for (const std::string_view text :
       {"1.1.1", "1.1.1.1.", "1.1.1.1.1", "1,1.1.1", "1.1.1,1", "1:1.1.1", "1.1.1.a", "1.1.1.0x",
        "00.1.1.1", "1.1.1.010", "1.1. 1.1", "1.1.1.1a", "....", "-1.1.1.1"}) {
    EXPECT_FALSE(is_ipv4_address(text)) << text;
  }
}

TEST(Authority, Ipv6AddressesHaveEightGroupsOrOneGap) {
  const auto groups = [](int count) {
    std::string text;
    for (int each = 0; each < count; ++each) text += (each > 0 ? ":" : "") + std::string("aF09");
    return text;
  };
  for (int before = 0; before <= 9; ++before) {
    EXPECT_EQ(is_ipv6_address(groups(before)), before == 8) << groups(before);
    EXPECT_FALSE(is_ipv6_address(groups(before) + ":"));
    EXPECT_FALSE(is_ipv6_address(":" + groups(before)));
    for (int after = 0; after <= 9; ++after) {
      const std::string text = groups(before) + "::" + groups(after);
      EXPECT_EQ(is_ipv6_address(text), before + after <= 7) << text;
      EXPECT_FALSE(is_ipv6_address(text + "::")) << text;
      EXPECT_FALSE(is_ipv6_address(text + "::1")) << text;
      if (after == 0) continue;
      const std::string mixed = text + ":1.2.3.4";
      EXPECT_EQ(is_ipv6_address(mixed), before + after <= 5) << mixed;
    }
    if (before == 0) continue;
    const std::string mixed = groups(before) + ":1.2.3.4";
    EXPECT_EQ(is_ipv6_address(mixed), before == 6) << mixed;
    const std::string mixed_gap = groups(before) + "::1.2.3.4";
    EXPECT_EQ(is_ipv6_address(mixed_gap), before <= 5) << mixed_gap;
  }
  for (const std::string_view text : {"12345::", "::12345", "::g", "1::.2.3.4", "::a.b.c.d",
                                      "::1.2.3.04", "::1.2.3.4:", "1.2.3.4::", "::1.2.3.4::", "1:2",
                                      "1 ::", "::-1", "1;:2", "::1/64", "[::]"}) {
    EXPECT_FALSE(is_ipv6_address(text)) << text;
  }
}

TEST(SameHost, ASecureRequestHasAPageOfHttps) {
  EXPECT_TRUE(is_same_host("https://a.example", "a.example", true));
  EXPECT_TRUE(is_same_host("https://a.example:8443", "a.example:8443", true));
  EXPECT_FALSE(is_same_host("http://a.example", "a.example", true));
  EXPECT_FALSE(is_same_host("http://a.example:443", "a.example", true));
  EXPECT_FALSE(is_same_host("http://a.example:8443", "a.example:8443", true));
}

}  // namespace
}  // namespace weir::http::authority_test
