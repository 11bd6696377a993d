#include "weir/net/dns/detail/host_name.hpp"

#include <gtest/gtest.h>

namespace weir::dns::host_name_test {
namespace {

TEST(HostName, IsNormalizedToLowerCaseWithoutTrailingDot) {
  const auto name = parse_host_name("WWW.Example.ORG");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->text, "www.example.org");
  EXPECT_FALSE(name->absolute);
  EXPECT_EQ(parse_host_name("example.org.")->text, "example.org");
  EXPECT_TRUE(parse_host_name("example.org.")->absolute);
  EXPECT_EQ(parse_host_name("_srv.xn--bcher-kva.a-b.c3")->text, "_srv.xn--bcher-kva.a-b.c3");
}

TEST(HostName, AcceptsAllLettersAndDigits) {
  const std::string lower = "abcdefghijklmnopqrstuvwxyz-0123456789_";
  EXPECT_EQ(parse_host_name("ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789_")->text, lower);
  EXPECT_EQ(parse_host_name(lower)->text, lower);
  EXPECT_EQ(parse_host_name("9.0.a9")->text, "9.0.a9");
  EXPECT_EQ(parse_host_name("0a")->text, "0a");
  EXPECT_EQ(parse_host_name("a..").error(), Errc::bad_input);
}

TEST(HostName, HasLengthLimits) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  EXPECT_TRUE(parse_host_name(longest));
  EXPECT_TRUE(parse_host_name(longest + "."));
  EXPECT_FALSE(parse_host_name(longest + "b"));
  EXPECT_FALSE(parse_host_name(label + "a.org"));
}

TEST(HostName, RejectsOtherText) {
  for (const std::string_view text :
       {"",          ".",         "..",     ".org",   "a..b",         "a b",   "a/b",
        "a:b",       "b\xc3\xbc", "-a.org", "a-.org", "a%1",          "127.1", "1",
        "256.1.1.1", "1.2.3.4.",  "a.0",    "a.9",    "a.0123456789", "a\n",   "a`b",
        "a{b",       "a@b",       "a[b",    "a^b",    "a,b",          "-",     "a.-",
        "a+b",       "\x80"}) {
    const auto name = parse_host_name(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error(), Errc::bad_input);
  }
  EXPECT_FALSE(parse_host_name(std::string_view("a\0b", 3)));
}

TEST(IpAddress, IsParsed) {
  EXPECT_EQ(parse_ip_address("127.0.0.1", 80), Endpoint::loopback(80));
  EXPECT_EQ(parse_ip_address("::1", 80), local_host_address(Family::ipv6).with_port(80));
  EXPECT_EQ(parse_ip_address("[::1]", 80), local_host_address(Family::ipv6).with_port(80));
  EXPECT_EQ(parse_ip_address("fe80::1%7", 80)->to_string(), "[fe80::1%7]:80");
  EXPECT_EQ(parse_ip_address("::ffff:1.2.3.4", 0)->family(), os::AddressFamily::ipv6);
  for (const std::string_view text :
       {"",    "localhost", "127.1", "1.2.3", "1.2.3.4:5",   "[::1",    "::1]",
        "[]",  "[1.2.3.4]", ":",     "*",     "unix:/tmp/a", "unix:@a", "[::1]:80",
        ":80", "80",        "[",     "]",     "[::1]x",      "[[::1]]"}) {
    EXPECT_EQ(parse_ip_address(text, 80), std::nullopt) << text;
  }
}

TEST(NormalHost, IsOneForAllFormsOfAHost) {
  struct Row {
    std::string_view text;
    std::string_view normal;
  };
  for (const Row& row : {Row{"a.example", "a.example"},
                         {"A.Example", "a.example"},
                         {"a.example.", "a.example"},
                         {"*.A.example.", "*.a.example"},
                         {"localhost", "localhost"},
                         {".", "."},
                         {"", ""},
                         {"192.0.2.1", "192.0.2.1"},
                         {"::ffff:192.0.2.1", "192.0.2.1"},
                         {"::FFFF:C000:201", "192.0.2.1"},
                         {"[0:0:0:0:0:ffff:c000:201]", "192.0.2.1"},
                         {"::1", "::1"},
                         {"[::1]", "::1"},
                         {"0:0:0:0:0:0:0:1", "::1"},
                         {"2001:0DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
                         {"fe80::1%eth0", "fe80::1"},
                         {"[FE80::1%25eth0]", "fe80::1"},
                         {"::ffff:1.2.3.256", "::ffff:1.2.3.256"},
                         {"127.1", "127.1"},
                         {"[V1.A:b]", "v1.a:b"},
                         {"b\xc3\x9c", "b\xc3\x9c"}}) {
    EXPECT_EQ(normal_host(row.text), row.normal) << row.text;
    EXPECT_TRUE(equal_hosts(row.text, row.normal)) << row.text;
    EXPECT_TRUE(equal_hosts(row.normal, row.text)) << row.text;
    EXPECT_FALSE(equal_hosts(row.text, "other.example")) << row.text;
    EXPECT_FALSE(equal_hosts("192.0.2.9", row.text)) << row.text;
  }
}

TEST(NormalHost, HasOneDotLessThanItsText) {
  EXPECT_EQ(normal_host("a.example.."), "a.example.");
  EXPECT_FALSE(equal_hosts("a.example..", "a.example"));
}

TEST(LocalHost, HasOneAddressOfEachFamilyWithoutPort) {
  EXPECT_EQ(local_host_address(Family::ipv6), parse_ip_address("::1", 0));
  EXPECT_EQ(local_host_address(Family::ipv4), parse_ip_address("127.0.0.1", 0));
}

TEST(LocalHost, IncludesItsSubdomains) {
  EXPECT_TRUE(is_local_host("localhost"));
  EXPECT_TRUE(is_local_host("a.localhost"));
  EXPECT_FALSE(is_local_host("notlocalhost"));
  EXPECT_FALSE(is_local_host("localhost.org"));
}

}  // namespace
}  // namespace weir::dns::host_name_test
