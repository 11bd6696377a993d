#include "weir/net/dns/detail/address_order.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::dns::address_order_test {
namespace {

Endpoint v6(std::uint8_t last) {
  return Endpoint::ipv6({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}, 80);
}
Endpoint v4(std::uint8_t last) {
  return Endpoint::ipv4({192, 0, 2, last}, 80);
}

/// Takes `count` addresses. Returns a text such as "6:1 4:1 6:2".
std::string take(AddressOrder& order, int count) {
  std::string text;
  for (int each = 0; each < count; ++each) {
    const std::optional<Endpoint> next = order.next();
    if (!next) return text + "none";
    const bool ipv6 = next->family() == os::AddressFamily::ipv6;
    for (std::uint8_t last = 1; last < 10; ++last) {
      if (*next == v6(last) || *next == v4(last)) {
        text += (ipv6 ? "6:" : "4:") + std::to_string(last) + " ";
      }
    }
  }
  return text;
}

TEST(AddressOrder, BeginsWithIpv6AndAlternates) {
  AddressOrder order;
  order.add(Family::ipv4, {v4(1), v4(2)});
  order.add(Family::ipv6, {v6(1), v6(2)});
  EXPECT_EQ(take(order, 4), "6:1 4:1 6:2 4:2 ");
  EXPECT_TRUE(order.empty());
}

TEST(AddressOrder, ContinuesWithOneFamilyIfTheOtherIsUsedUp) {
  AddressOrder order;
  order.add(Family::ipv6, {v6(1), v6(2), v6(3)});
  order.add(Family::ipv4, {v4(1)});
  EXPECT_EQ(take(order, 4), "6:1 4:1 6:2 6:3 ");
  AddressOrder other;
  other.add(Family::ipv6, {v6(1)});
  other.add(Family::ipv4, {v4(1), v4(2), v4(3)});
  EXPECT_EQ(take(other, 4), "6:1 4:1 4:2 4:3 ");
}

TEST(AddressOrder, AFamilyThatComesLateIsNext) {
  AddressOrder order;
  order.add(Family::ipv4, {v4(1), v4(2), v4(3)});
  EXPECT_EQ(take(order, 2), "4:1 4:2 ");
  order.add(Family::ipv6, {v6(1), v6(2)});
  EXPECT_EQ(take(order, 3), "6:1 4:3 6:2 ");
  AddressOrder other;
  other.add(Family::ipv6, {v6(1), v6(2), v6(3)});
  EXPECT_EQ(take(other, 2), "6:1 6:2 ");
  other.add(Family::ipv4, {v4(1)});
  EXPECT_EQ(take(other, 2), "4:1 6:3 ");
}

TEST(AddressOrder, KeepsTheOrderOfInsertion) {
  AddressOrder order;
  order.add(Family::ipv6, {v6(3), v6(1)});
  order.add(Family::ipv6, {v6(2)});
  EXPECT_EQ(take(order, 3), "6:3 6:1 6:2 ");
}

TEST(AddressOrder, IsEmptyUntilAnAddressIsAdded) {
  AddressOrder order;
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(order.next(), std::nullopt);
  order.add(Family::ipv6, {});
  EXPECT_TRUE(order.empty());
  order.add(Family::ipv4, {v4(1)});
  EXPECT_FALSE(order.empty());
  EXPECT_EQ(take(order, 2), "4:1 none");
  order.add(Family::ipv4, {v4(2)});
  EXPECT_FALSE(order.empty());
  EXPECT_EQ(take(order, 2), "4:2 none");
}

}  // namespace
}  // namespace weir::dns::address_order_test
