#include "weir/loop/detail/listen/bind_retry.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace weir {
namespace {

using namespace std::chrono_literals;

/// Returns the number of retries for an address of this family.
int tries_of(os::AddressFamily family) {
  BindRetry retry(family);
  Duration waited{};
  Duration longest{};
  int tries = 0;
  while (const auto pause = retry.next_pause(system_error(EADDRINUSE))) {
    EXPECT_GE(*pause, longest);
    longest = *pause;
    waited += *pause;
    ++tries;
  }
  EXPECT_GE(waited, 1s);
  EXPECT_LT(waited, 1500ms);
  return tries;
}

TEST(BindRetry, PausesGrowAndEndAfterASecond) {
  EXPECT_LE(BindRetry(os::AddressFamily::ipv4).next_pause(system_error(EADDRINUSE)), 2ms);
  const int tries = tries_of(os::AddressFamily::ipv4);
  EXPECT_GT(tries, 20);
  EXPECT_LT(tries, 40);
}

// Each attempt on a path makes a connection to its owner.
TEST(BindRetry, RetriesAPathAtMostFiveTimes) {
  EXPECT_LE(tries_of(os::AddressFamily::local), 5);
}

TEST(BindRetry, RetriesOnlyIfTheAddressIsInUse) {
  BindRetry retry(os::AddressFamily::ipv6);
  for (const int error : {EACCES, EADDRNOTAVAIL, EMFILE, EINVAL}) {
    EXPECT_EQ(retry.next_pause(system_error(error)), std::nullopt) << error;
  }
  EXPECT_TRUE(retry.next_pause(system_error(EADDRINUSE)));
}

}  // namespace
}  // namespace weir
