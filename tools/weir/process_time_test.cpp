#include "tools/weir/process_time.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

namespace weir::bench {
namespace {

Duration own_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST(ProcessTime, AgreesWithTheKernelsOtherAccount) {
  const std::array<int, 1> self{::getpid()};
  const auto before = process_time(self);
  ASSERT_TRUE(before.has_value());
  const Duration own_before = own_time();
  while (own_time() - own_before < std::chrono::milliseconds(100)) {
  }
  const auto after = process_time(self);
  ASSERT_TRUE(after.has_value());
  const Duration own = own_time() - own_before;
  EXPECT_NEAR(static_cast<double>((*after - *before).count()), static_cast<double>(own.count()),
              30e6);
}

TEST(ProcessTime, SaysWhenAProcessIsNotThere) {
  const std::array<int, 2> one_missing{::getpid(), 1 << 30};
  EXPECT_EQ(process_time(one_missing).error(), Errc::not_found);
}

}  // namespace
}  // namespace weir::bench
