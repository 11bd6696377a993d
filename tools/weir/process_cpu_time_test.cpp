// Tests of the CPU time of processes.
#include "tools/weir/process_cpu_time.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>

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

/// Returns the time of all threads of this process in nanoseconds; 0 without schedstat.
Duration scheduled_time() {
  std::int64_t sum = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::int64_t time = 0;
    std::ifstream(thread.path() / "schedstat") >> time;
    sum += time;
  }
  return Duration(sum);
}

TEST(ProcessTime, HasNanosecondsIfTheKernelProvidesThem) {
  const std::array<int, 1> self{::getpid()};
  const Duration before = scheduled_time();
  const auto time = process_cpu_time(self);
  const Duration after = scheduled_time();
  ASSERT_TRUE(time.has_value());
  if (before == Duration::zero()) return;  // the kernel has no schedstat
  EXPECT_GE(*time, before);
  EXPECT_LE(*time, after);
}

TEST(ProcessTime, AddsUpTheProcesses) {
  const std::array<int, 1> self{::getpid()};
  const std::array<int, 2> twice{::getpid(), ::getpid()};
  const auto before = process_cpu_time(self);
  const auto both = process_cpu_time(twice);
  const auto after = process_cpu_time(self);
  EXPECT_GE(both.value(), 2 * before.value());
  EXPECT_LE(both.value(), 2 * after.value());
  EXPECT_EQ(process_cpu_time({}), Duration::zero());
}

}  // namespace
}  // namespace weir::bench
