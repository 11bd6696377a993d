#include "weir/loop/detail/listen/held_addresses.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::loop::held_addresses_test {
namespace {

os::Address address(std::string_view text) {
  return os::Address::parse(text).value();
}

TEST(HeldAddresses, FindsTheSocketThatHasTheAddress) {
  struct {
    std::string_view held;
    std::string_view asked;
    bool conflict;
  } const cases[] = {
      {"127.0.0.1:80", "127.0.0.1:80", true},  {"127.0.0.1:80", "127.0.0.1:81", false},
      {"127.0.0.1:80", "127.0.0.2:80", false}, {"0.0.0.0:80", "127.0.0.1:80", true},
      {"127.0.0.1:80", "0.0.0.0:80", true},    {"0.0.0.0:80", "127.0.0.1:81", false},
      {"[::]:80", "127.0.0.1:80", true},       {"127.0.0.1:80", "[::]:80", true},
      {"[::]:80", "[::1]:80", true},           {"0.0.0.0:80", "[::1]:80", false},
      {"[::1]:80", "0.0.0.0:80", false},       {"[::1]:80", "127.0.0.1:80", false},
      {"[::]:80", "0.0.0.0:80", true},         {"0.0.0.0:80", "127.0.0.1:0", false},
  };
  for (const auto& each : cases) {
    HeldAddresses held;
    const HeldAddresses::Hold hold = held.hold(address(each.held));
    EXPECT_EQ(held.find_conflict(address(each.asked)),
              each.conflict ? std::optional(address(each.held)) : std::nullopt)
        << each.held << " " << each.asked;
  }
}

TEST(HeldAddresses, ComparesPathsAsAWhole) {
  HeldAddresses held;
  const HeldAddresses::Hold hold = held.hold(os::Address::local("/one").value());
  EXPECT_TRUE(held.find_conflict(os::Address::local("/one").value()));
  EXPECT_FALSE(held.find_conflict(os::Address::local("/two").value()));
  EXPECT_FALSE(held.find_conflict(address("0.0.0.0:80")));
}

TEST(HeldAddresses, ForgetsAnAddressWithItsSocket) {
  HeldAddresses held;
  HeldAddresses::Hold first = held.hold(address("127.0.0.1:80"));
  HeldAddresses::Hold second = held.hold(address("127.0.0.1:80"));
  first.reset();
  EXPECT_TRUE(held.find_conflict(address("127.0.0.1:80"))) << "the second socket has it";
  second.reset();
  EXPECT_FALSE(held.find_conflict(address("127.0.0.1:80")));
}

TEST(HeldAddresses, KeepsAnAddressWhileManySocketsComeAndGo) {
  HeldAddresses held;
  const HeldAddresses::Hold kept = held.hold(address("127.0.0.1:80"));
  for (std::uint16_t port = 1000; port < 2000; ++port) {
    const HeldAddresses::Hold gone = held.hold(address("127.0.0.1:1").with_port(port));
    ASSERT_TRUE(held.find_conflict(address("127.0.0.1:1").with_port(port)));
  }
  EXPECT_TRUE(held.find_conflict(address("127.0.0.1:80")));
  EXPECT_FALSE(held.find_conflict(address("127.0.0.1:1500")));
}

TEST(HeldAddresses, KnowsTheOwnerOfASocket) {
  HeldAddresses held;
  const int loops[2] = {};
  HeldAddresses::Hold hold = held.hold(address("127.0.0.1:80"), &loops[0]);
  const HeldAddresses::Hold unowned = held.hold(address("127.0.0.1:81"));
  EXPECT_TRUE(held.holds(&loops[0], address("127.0.0.1:80")));
  EXPECT_FALSE(held.holds(&loops[0], address("127.0.0.1:81")));
  EXPECT_FALSE(held.holds(&loops[0], address("0.0.0.0:80"))) << "only the same address";
  EXPECT_FALSE(held.holds(&loops[1], address("127.0.0.1:80")));
  EXPECT_FALSE(held.holds(nullptr, address("127.0.0.1:81")));
  hold.reset();
  EXPECT_FALSE(held.holds(&loops[0], address("127.0.0.1:80")));
}

}  // namespace
}  // namespace weir::loop::held_addresses_test
