// Tests of the conversions of addresses, valid and invalid.
#include "weir/os/address.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::os::address_test {
namespace {

std::string round_trip(std::string_view text) {
  const auto address = Address::parse(text);
  return address ? address->to_string() : "refused: " + address.error().message();
}

TEST(Address, FormatsParsedAddresses) {
  for (const char* text :
       {"127.0.0.1:8080", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:8080", "[::]:80",
        "[2001:db8::1]:443", "[fe80::1%1]:9", "unix:/run/weir.sock", "unix:relative.sock",
        "unix:@abstract", "unix:/with:colon", "unix:/with space"}) {
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST(Address, ShortFormsMeanEveryInterface) {
  EXPECT_EQ(round_trip(":8080"), "[::]:8080");
  EXPECT_EQ(round_trip("8080"), "[::]:8080");
  EXPECT_EQ(round_trip("0"), "[::]:0");
  EXPECT_TRUE(Address::parse(":1")->is_any());
  EXPECT_TRUE(Address::parse("0.0.0.0:1")->is_any());
  EXPECT_FALSE(Address::loopback(1).is_any());
  EXPECT_FALSE(Address().is_any());
  EXPECT_FALSE(Address::parse("[::1]:1")->is_any());
}

TEST(Address, RejectsInvalidText) {
  const std::string long_path = "unix:/" + std::string(107, 'a');
  for (const std::string& text : {std::string(),
                                  std::string(":"),
                                  std::string("[::1]"),
                                  std::string("[::1]:"),
                                  std::string("::1:8080x"),
                                  std::string("::1"),
                                  std::string("127.0.0.1"),
                                  std::string("127.0.0.1:"),
                                  std::string("127.0.0.1:65536"),
                                  std::string("127.0.0.1:-1"),
                                  std::string("127.0.0.1:+1"),
                                  std::string("127.0.0.1: 1"),
                                  std::string("127.0.0.1:1 "),
                                  std::string("127.0.0.1:0x50"),
                                  std::string("127.0.0.256:1"),
                                  std::string("127.1:1"),
                                  std::string("1.2.3.4.5:1"),
                                  std::string("localhost:80"),
                                  std::string("[127.0.0.1]:80"),
                                  std::string("[::1:80"),
                                  std::string("::1]:80"),
                                  std::string("[]:80"),
                                  std::string("[::1%]:80"),
                                  std::string("[::1%no-such-interface0]:80"),
                                  std::string("[::1%4294967296]:80"),
                                  std::string("[::1%weir-no-such]:80"),
                                  std::string("[::1%no-such-interface-name]:80"),
                                  std::string("x::1]:80"),
                                  std::string("[::1x:80"),
                                  "[" + std::string(45, 'f') + "]:80",
                                  "[" + std::string(46, 'f') + "]:80",
                                  "[" + std::string(47, 'f') + "]:80",
                                  std::string(46, '1') + ":80",
                                  std::string("unix:"),
                                  std::string("unix:@"),
                                  long_path,
                                  std::string("unix:/a\0b", 9),
                                  std::string("127.0.0.1\0:80", 13),
                                  std::string("[::1\0]:80", 9),
                                  std::string(500, '1'),
                                  std::string(500, ':'),
                                  "[" + std::string(500, ':') + "]:1"}) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address) << text << " was read as " << address->to_string();
    EXPECT_EQ(address.error(), Errc::bad_input);
  }
}

TEST(Address, ParsesTheLongestIpv6Text) {
  const std::string longest = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255";
  ASSERT_EQ(longest.size(), 45U);
  EXPECT_EQ(round_trip("[" + longest + "]:1"), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1");
}

TEST(Address, ReadsOnlyTheGivenText) {
  const std::string_view longer = "127.0.0.1:8080";
  EXPECT_EQ(Address::parse(longer.substr(0, 12)).value(), Address::loopback(80));
  EXPECT_EQ(Address::parse(longer.substr(0, 11)).value(), Address::loopback(8));
}

TEST(Address, ReadsTheScopeFromTheNameOfAnInterface) {
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(1, name.data()) == nullptr) GTEST_SKIP() << "no first interface";
  EXPECT_EQ(round_trip("[fe80::1%" + std::string(name.data()) + "]:9"), "[fe80::1%1]:9");
  EXPECT_EQ(round_trip("[fe80::1%0]:9"), "[fe80::1]:9");
  EXPECT_EQ(round_trip("[fe80::1%4294967295]:9"), "[fe80::1%4294967295]:9");
}

TEST(Address, EscapesBytesThatAreNotPrintableAndBackslashesOnly) {
  const std::string bytes = "\x01\x1f ~\x7f\x80\xff\\[]'%@k\xc3\xb6ln\\\\\xc2\x9b\xe2\x80\xae";
  const std::string escaped =
      "\\x01\\x1f ~\\x7f\\x80\\xff\\x5c[]'%@k\xc3\xb6ln\\x5c\\x5c\\xc2\\x9b\\xe2\\x80\\xae";
  EXPECT_EQ(Address::local("/" + bytes)->to_string(), "unix:/" + escaped);
  EXPECT_EQ(Address::local("@" + bytes)->to_string(), "unix:@" + escaped);
}

TEST(Address, HasTheKernelsLayout) {
  const Address four = Address::parse("10.1.2.3:258").value();
  ASSERT_EQ(four.size(), sizeof(sockaddr_in));
  sockaddr_in in{};
  std::memcpy(&in, four.data(), sizeof in);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_EQ(ntohl(in.sin_addr.s_addr), 0x0a010203u);
  EXPECT_EQ(ntohs(in.sin_port), 258);

  const Address six = Address::parse("[fe80::2%7]:258").value();
  ASSERT_EQ(six.size(), sizeof(sockaddr_in6));
  sockaddr_in6 in6{};
  std::memcpy(&in6, six.data(), sizeof in6);
  EXPECT_EQ(in6.sin6_scope_id, 7u);
  EXPECT_EQ(in6.sin6_addr.s6_addr[15], 2);

  const Address path = Address::parse("unix:/ab").value();
  EXPECT_EQ(path.size(), offsetof(sockaddr_un, sun_path) + 4);
  EXPECT_EQ(path.path(), "/ab");
  const Address abstract = Address::parse("unix:@ab").value();
  EXPECT_EQ(abstract.size(), offsetof(sockaddr_un, sun_path) + 3);
  EXPECT_EQ(abstract.path(), "");
}

TEST(Address, TheLongestPathFits) {
  const std::string name = "/" + std::string(106, 'a');
  const Address address = Address::local(name).value();
  EXPECT_EQ(address.path(), name);
  EXPECT_LE(address.size(), sizeof(sockaddr_un));
  const std::string abstract = "@" + std::string(106, 'a');
  EXPECT_EQ(Address::local(abstract)->to_string(), "unix:" + abstract);
  EXPECT_EQ(Address::local(abstract + "a").error(), Errc::bad_input);
  EXPECT_EQ(Address::local(name + "a").error(), Errc::bad_input);
}

TEST(Address, ReturnsItsFamilyAndPort) {
  EXPECT_EQ(Address().family(), AddressFamily::none);
  EXPECT_EQ(Address().to_string(), "-");
  EXPECT_EQ(Address::loopback(9).family(), AddressFamily::ipv4);
  EXPECT_EQ(Address::any(9).family(), AddressFamily::ipv6);
  EXPECT_EQ(Address::any(9).port(), 9);
  EXPECT_EQ(Address::loopback(9).with_port(65535).to_string(), "127.0.0.1:65535");
  EXPECT_EQ(Address::parse("[::1]:1")->with_port(2).to_string(), "[::1]:2");
  const Address local = Address::local("/a").value();
  EXPECT_EQ(local.with_port(80), local);
  EXPECT_EQ(local.port(), 0);
  EXPECT_FALSE(local.is_inet());
}

TEST(Address, ATruncatedAddressIsNotAnInetAddress) {
  Address address = Address::loopback(80);
  address.set_size(4);
  EXPECT_EQ(address.family(), AddressFamily::none);
  address.set_size(sizeof(sockaddr_in) - 1);
  EXPECT_EQ(address.family(), AddressFamily::none);
  EXPECT_EQ(address.port(), 0);
  address.set_size(0);
  EXPECT_EQ(address.to_string(), "-");
  address.set_size(1u << 20);
  EXPECT_EQ(address.size(), Address::capacity);
}

TEST(Address, ATruncatedOrUnknownAddressHasNoFamily) {
  Address six = Address::any(80);
  six.set_size(sizeof(sockaddr_in6) - 1);
  EXPECT_EQ(six.family(), AddressFamily::none);
  EXPECT_EQ(six.to_string(), "-");
  Address local = Address::local("/a").value();
  local.set_size(1);
  EXPECT_EQ(local.family(), AddressFamily::none);
  sockaddr_in unknown{};
  unknown.sin_family = AF_PACKET;
  Address other;
  EXPECT_EQ(other.size(), 0U);
  std::memcpy(other.buffer(), &unknown, sizeof unknown);
  other.set_size(sizeof unknown);
  EXPECT_EQ(other.family(), AddressFamily::none);
  EXPECT_FALSE(other.is_inet());
  EXPECT_FALSE(other.is_any());
  EXPECT_EQ(other.port(), 0);
  EXPECT_EQ(other.path(), "");
  EXPECT_EQ(other.to_string(), "-");
  EXPECT_EQ(other.with_port(80), other);
}

TEST(Address, UnnamedAndStrangeUnixNamesAreSafeToLog) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  Address unnamed;
  std::memcpy(unnamed.buffer(), &un, sizeof(sa_family_t));
  unnamed.set_size(sizeof(sa_family_t));
  EXPECT_EQ(unnamed.family(), AddressFamily::local);
  EXPECT_EQ(unnamed.to_string(), "unix:");

  std::memcpy(un.sun_path, "\0a\nb\\\0c", 7);
  Address strange;
  std::memcpy(strange.buffer(), &un, sizeof un);
  strange.set_size(offsetof(sockaddr_un, sun_path) + 7);
  EXPECT_EQ(strange.to_string(), "unix:@a\\x0ab\\x5c\\x00c");
  EXPECT_EQ(strange.path(), "");
}

// The kernel returns a path of 108 bytes without a zero byte.
TEST(Address, APathMayFillTheWholeKernelAddress) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::memset(un.sun_path, 'a', sizeof un.sun_path);
  Address address;
  std::memcpy(address.buffer(), &un, sizeof un);
  address.set_size(sizeof un);
  EXPECT_EQ(address.path(), std::string(108, 'a'));
  EXPECT_EQ(address.to_string(), "unix:" + std::string(108, 'a'));
  address.set_size(offsetof(sockaddr_un, sun_path) + 1);
  EXPECT_EQ(address.path(), "a");
  address.set_size(offsetof(sockaddr_un, sun_path));
  EXPECT_EQ(address.path(), "");
  EXPECT_EQ(address.to_string(), "unix:");
}

TEST(Address, KeepsItsScopeWithAnotherPort) {
  const Address scoped = Address::parse("[fe80::1%7]:1").value();
  EXPECT_EQ(scoped.with_port(2).to_string(), "[fe80::1%7]:2");
  EXPECT_EQ(scoped.port(), 1) << "the address itself is unchanged";
  EXPECT_NE(scoped, Address::parse("[fe80::1%8]:1").value());
}

TEST(Address, ComparesByValue) {
  EXPECT_EQ(Address::parse("127.0.0.1:1").value(), Address::loopback(1));
  EXPECT_NE(Address::loopback(1), Address::loopback(2));
  EXPECT_NE(Address::parse("unix:@a").value(), Address::parse("unix:a").value());
  EXPECT_NE(Address(), Address::loopback(0));
  EXPECT_EQ(Address(), Address());
  EXPECT_NE(Address::parse("unix:@a").value(), Address::parse("unix:@ab").value());
  EXPECT_NE(Address::ipv6({}, 1, 0), Address::ipv6({}, 1, 2));
}

}  // namespace
}  // namespace weir::os::address_test
