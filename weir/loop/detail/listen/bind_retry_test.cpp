#include "weir/loop/detail/listen/bind_retry.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <vector>

namespace weir::loop::bind_retry_test {
namespace {

using namespace std::chrono_literals;

/// Returns the pauses for an address of this family, in milliseconds.
std::vector<int> pauses_of(os::AddressFamily family) {
  BindRetry retry(family);
  std::vector<int> pauses;
  while (const auto pause = retry.next_pause(system_error(EADDRINUSE))) {
    pauses.push_back(static_cast<int>(*pause / 1ms));
  }
  return pauses;
}

TEST(BindRetry, PausesDoubleAndEndAfterASecond) {
  std::vector<int> expected = {1, 2, 4, 8, 16, 32};
  expected.insert(expected.end(), 19, 50);
  EXPECT_EQ(pauses_of(os::AddressFamily::ipv4), expected);
  EXPECT_EQ(pauses_of(os::AddressFamily::ipv6), expected);
}

// Each attempt on a path makes a connection to its owner.
TEST(BindRetry, RetriesAPathAtMostFiveTimes) {
  EXPECT_EQ(pauses_of(os::AddressFamily::local), (std::vector<int>{50, 100, 200, 400, 400}));
}

TEST(BindRetry, AnotherErrorNeitherCountsNorRestartsThePauses) {
  BindRetry retry(os::AddressFamily::local);
  std::vector<int> pauses;
  while (const auto pause = retry.next_pause(system_error(EADDRINUSE))) {
    pauses.push_back(static_cast<int>(*pause / 1ms));
    EXPECT_EQ(retry.next_pause(system_error(EACCES)), std::nullopt);
  }
  EXPECT_EQ(pauses, (std::vector<int>{50, 100, 200, 400, 400}));
  EXPECT_EQ(retry.next_pause(system_error(EADDRINUSE)), std::nullopt) << "the end is final";
}

TEST(BindRetry, RetriesOnlyIfTheAddressIsInUse) {
  BindRetry retry(os::AddressFamily::ipv6);
  for (const int error : {EACCES, EADDRNOTAVAIL, EMFILE, EINVAL}) {
    EXPECT_EQ(retry.next_pause(system_error(error)), std::nullopt) << error;
  }
  EXPECT_TRUE(retry.next_pause(system_error(EADDRINUSE)));
}

}  // namespace
}  // namespace weir::loop::bind_retry_test
