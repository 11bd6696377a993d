#include "weir/loop/address_patience.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(AddressPatience, TriesSoonThenLessOftenAndEndsAfterASecond) {
  AddressPatience patience;
  Duration waited{};
  Duration longest{};
  int tries = 0;
  while (const auto pause = patience.after(system_error(EADDRINUSE))) {
    if (tries == 0) {
      EXPECT_LE(*pause, 2ms);
    }
    EXPECT_GE(*pause, longest);
    longest = *pause;
    waited += *pause;
    ++tries;
  }
  EXPECT_GE(waited, 1s);
  EXPECT_LT(waited, 1200ms);
  EXPECT_LE(longest, 50ms);
  EXPECT_LT(tries, 40);
}

TEST(AddressPatience, WaitsForNothingButAnAddressThatIsTaken) {
  AddressPatience patience;
  for (const int error : {EACCES, EADDRNOTAVAIL, EMFILE, EINVAL}) {
    EXPECT_EQ(patience.after(system_error(error)), std::nullopt) << error;
  }
  EXPECT_TRUE(patience.after(system_error(EADDRINUSE)));
}

}  // namespace
}  // namespace weir
