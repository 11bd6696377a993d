#include "weir/loop/detail/listen/bind_retry.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace weir {
namespace {

using namespace std::chrono_literals;

/// How often it has an address of that family tried again.
int tries_of(os::AddressFamily family) {
  AddressPatience patience(family);
  Duration waited{};
  Duration longest{};
  int tries = 0;
  while (const auto pause = patience.after(system_error(EADDRINUSE))) {
    EXPECT_GE(*pause, longest);
    longest = *pause;
    waited += *pause;
    ++tries;
  }
  EXPECT_GE(waited, 1s);
  EXPECT_LT(waited, 1500ms);
  return tries;
}

TEST(AddressPatience, TriesSoonThenLessOftenAndEndsAfterASecond) {
  EXPECT_LE(AddressPatience(os::AddressFamily::ipv4).after(system_error(EADDRINUSE)), 2ms);
  const int tries = tries_of(os::AddressFamily::ipv4);
  EXPECT_GT(tries, 20);
  EXPECT_LT(tries, 40);
}

// Each attempt at a path costs whoever has it a connection.
TEST(AddressPatience, TriesAPathAFewTimes) {
  EXPECT_LE(tries_of(os::AddressFamily::local), 5);
}

TEST(AddressPatience, WaitsForNothingButAnAddressThatIsTaken) {
  AddressPatience patience(os::AddressFamily::ipv6);
  for (const int error : {EACCES, EADDRNOTAVAIL, EMFILE, EINVAL}) {
    EXPECT_EQ(patience.after(system_error(error)), std::nullopt) << error;
  }
  EXPECT_TRUE(patience.after(system_error(EADDRINUSE)));
}

}  // namespace
}  // namespace weir
