// Tests of ranges of IP addresses.
#include "weir/os/ip_range.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::os::ip_range_test {
namespace {

bool contains(std::string_view range, std::string_view address) {
  return IpRange::parse(range).value().contains(parse_ip(address).value());
}

TEST(IpRange, ContainsTheAddressesOfItsPrefix) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(contains("192.0.2.128/25", "192.0.2.128"));
  EXPECT_FALSE(contains("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(contains("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(contains("127.0.0.1", "127.0.0.2"));
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("::/0", "2001:db8::1"));
  EXPECT_TRUE(contains("::1", "::1"));
}

TEST(IpRange, ContainsMappedAddresses) {
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_FALSE(contains("::ffff:10.0.0.0/104", "11.1.2.3"));
}

TEST(IpRange, KnowsTheAddressesOfLoopback) {
  for (const char* text :
       {"127.0.0.0", "127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1", "::1"}) {
    EXPECT_TRUE(is_loopback(parse_ip(text).value())) << text;
  }
  for (const char* text :
       {"126.255.255.255", "128.0.0.0", "0.0.0.0", "::", "::2", "::127.0.0.1", "1::1", "7f00::1"}) {
    EXPECT_FALSE(is_loopback(parse_ip(text).value())) << text;
  }
}

TEST(IpRange, RejectsOtherTexts) {
  for (const char* text :
       {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.1/8", "10.0.0",
        "10.0.0.0/8 ", "a", "::/129", "2001:db8::1/64", "[::1]", "fe80::1%eth0", "010.0.0.0/8",
        "10.0.0.0/8/8", "1:2:3:4:5:6:7:8:9", "::ffff:10.0.0.0/8"}) {
    EXPECT_FALSE(IpRange::parse(text)) << text;
  }
  EXPECT_FALSE(parse_ip(std::string_view("1.2.3.4\0", 8)));
}

TEST(IpBytes, AreThoseOfTheAddress) {
  EXPECT_EQ(ip_bytes(Address::loopback(80)), parse_ip("127.0.0.1"));
  EXPECT_EQ(ip_bytes(Address::parse("[2001:db8::7]:1").value()), parse_ip("2001:db8::7"));
  EXPECT_FALSE(ip_bytes(Address()));
  EXPECT_FALSE(ip_bytes(Address::local("/a").value()));
  EXPECT_EQ(to_address(*parse_ip("::ffff:1.2.3.4"), 5).to_string(), "1.2.3.4:5");
  EXPECT_EQ(to_address(*parse_ip("2001:db8::7"), 5).to_string(), "[2001:db8::7]:5");
}

TEST(IpBytes, HaveAText) {
  EXPECT_EQ(ip_text(*parse_ip("192.0.2.1")), "192.0.2.1");
  EXPECT_EQ(ip_text(*parse_ip("::ffff:192.0.2.1")), "192.0.2.1");
  EXPECT_EQ(ip_text(*parse_ip("2001:DB8:0:0::7")), "2001:db8::7");
  EXPECT_EQ(ip_text({}), "::");
}

TEST(IpBytes, CanBeMasked) {
  EXPECT_EQ(masked(*parse_ip("2001:db8:1:2:3::4"), 64), parse_ip("2001:db8:1:2::"));
  EXPECT_EQ(masked(*parse_ip("192.0.2.77"), 24), parse_ip("192.0.2.0"));
  EXPECT_EQ(masked(*parse_ip("192.0.2.77"), 64), parse_ip("192.0.2.77"));
  EXPECT_EQ(masked(*parse_ip("2001:db8::1"), 0), parse_ip("::"));
}

TEST(IpBytes, ClientsOfOneNetworkOf64BitsAreOne) {
  const auto network = [](std::string_view text) {
    return client_network(to_address(*parse_ip(text), 80));
  };
  EXPECT_EQ(network("2001:db8:1:2::1"), network("2001:db8:1:2:3:4:5:6"));
  EXPECT_NE(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
  EXPECT_EQ(network("192.0.2.1"), network("::ffff:192.0.2.1"));
  EXPECT_NE(network("192.0.2.1"), network("192.0.2.2"));
  EXPECT_EQ(client_network(Address()), client_network(*Address::local("/tmp/a")));
}

}  // namespace
}  // namespace weir::os::ip_range_test
