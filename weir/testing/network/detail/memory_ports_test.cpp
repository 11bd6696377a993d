// Tests of the ports of a simulated platform.
#include "weir/testing/network/detail/memory_ports.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::memory_ports_test {
namespace {

using os::Address;

TEST(MemoryPorts, EachPortIsGivenOnceBeforeTheFirstOneAgain) {
  MemoryPorts ports;
  std::set<std::uint16_t> seen;
  while (seen.insert(ports.next()).second) {
  }
  EXPECT_EQ(seen.size(), 61000U - 32768U);
  EXPECT_EQ(ports.next(), *seen.begin() + 1) << "the first port was given twice";
}

TEST(MemoryPorts, TakenPortsAreSkipped) {
  MemoryPorts ports;
  const auto odd = [](const Address& address) { return address.port() % 2 != 0; };
  EXPECT_EQ(ports.find(Address::loopback(0), odd)->port(), 32768);
  EXPECT_EQ(ports.find(Address::loopback(0), odd)->port(), 32770);
  EXPECT_FALSE(ports.find(Address::loopback(0), [](const Address&) { return true; }));
  EXPECT_EQ(ports.find(Address::loopback(0), odd)->port(), 32772) << "every port was tried once";
}

TEST(MemoryPorts, EachFamilyHasItsLoopbackAddress) {
  EXPECT_EQ(loopback_of(os::AddressFamily::ipv4, 80).to_string(), "127.0.0.1:80");
  EXPECT_EQ(loopback_of(os::AddressFamily::ipv6, 80).to_string(), "[::1]:80");
}

TEST(MemoryPorts, AWildcardAddressCoversItsPort) {
  const Address to = Address::loopback(80);
  const Address to_ipv6 = loopback_of(os::AddressFamily::ipv6, 80);
  const Address all = Address::ipv4({0, 0, 0, 0}, 80);
  const Address all_ipv6 = Address::any(80);
  EXPECT_TRUE(covers(all, to));
  EXPECT_TRUE(covers(all_ipv6, to)) << "[::] receives IPv4 too";
  EXPECT_TRUE(covers(all_ipv6, to_ipv6));
  EXPECT_FALSE(covers(all, to_ipv6));
  EXPECT_FALSE(covers(all, Address::loopback(81)));
  EXPECT_FALSE(covers(all_ipv6, Address::any(81)));
  EXPECT_FALSE(covers(to, to)) << "not a wildcard address";
  EXPECT_FALSE(covers(Address::any(0), Address::local("/run/a").value()));
  EXPECT_FALSE(covers(Address::any(0), Address()));
}

}  // namespace
}  // namespace weir::memory_ports_test
