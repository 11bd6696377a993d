// Tests of the CPU time of processes.
#include "tools/weir/process_cpu_time.hpp"

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

TEST(ProcessTime, AgreesWithGetrusage) {
  // Reads one account before and after the other, since both cannot be read at the same time. The
  // kernel updates the account at its ticks, at least 100 per second.
  constexpr Duration ticks = std::chrono::milliseconds(30);
  const std::array<int, 1> self{::getpid()};
  const Duration outer_begin = own_time();
  const auto before = process_cpu_time(self);
  ASSERT_TRUE(before.has_value());
  const Duration inner_begin = own_time();
  while (own_time() - inner_begin < std::chrono::milliseconds(100)) {
  }
  const Duration inner = own_time() - inner_begin;
  const auto after = process_cpu_time(self);
  ASSERT_TRUE(after.has_value());
  const Duration outer = own_time() - outer_begin;
  EXPECT_GE(*after - *before, inner - ticks);
  EXPECT_LE(*after - *before, outer + ticks);
}

TEST(ProcessTime, ReportsAMissingProcess) {
  const std::array<int, 2> one_missing{::getpid(), 1 << 30};
  EXPECT_EQ(process_cpu_time(one_missing).error(), Errc::not_found);
}

}  // namespace
}  // namespace weir::bench
