#include "weir/os/background.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace weir::os {
namespace {

int niceness_of(pid_t thread) {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
}

TEST(Background, StandsBackByItsNicenessAndPolicyAndSoDoesWhatItStarts) {
  const int expected = std::min(niceness_of(::getpid()) + niceness_more, 19);
  const auto look = [&] {
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
    EXPECT_EQ(niceness_of(::gettid()), expected);
  };
  std::thread([&] {
    ASSERT_TRUE(stand_back());
    look();
    std::thread([&] {
      look();
      ASSERT_TRUE(stand_back());  // no further
      look();
    }).join();
  }).join();
  EXPECT_NE(::sched_getscheduler(0), SCHED_BATCH) << "it alone";
}

}  // namespace
}  // namespace weir::os
