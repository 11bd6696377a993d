// Tests of the CPU time of processes.
#include "tools/weir/process_cpu_time.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace weir::bench::process_cpu_time_test {
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

/// A folder with a /proc of its own, which holds only process 7.
class FakeProc : public testing::Test {
 protected:
  FakeProc() {
    std::string name = testing::TempDir() + "weir_proc_XXXXXX";
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(threads());
  }
  ~FakeProc() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::filesystem::path threads() const { return root_ / "proc/7/task"; }
  void add_thread(std::string_view id, std::string_view schedstat, std::string_view stat) const {
    std::filesystem::create_directory(threads() / id);
    if (!schedstat.empty()) std::ofstream(threads() / id / "schedstat") << schedstat;
    if (!stat.empty()) std::ofstream(threads() / id / "stat") << stat;
  }
  /// Returns the time of process 7 that a thread reads if this folder is its root. Returns nullopt
  /// if the user may not set the root of a thread.
  std::optional<Result<Duration>> measured() const {
    std::optional<Result<Duration>> time;
    std::thread([&] {
      if (::unshare(CLONE_FS) != 0 || ::chroot(root_.c_str()) != 0) return;
      const std::array<int, 1> process{7};
      time = process_cpu_time(process);
    }).join();
    return time;
  }
  static Duration ticks(int count) { return count * (Duration(1s) / ::sysconf(_SC_CLK_TCK)); }

 private:
  std::filesystem::path root_;
};

// The fields are the state, 10 numbers, utime, stime, and others.
constexpr std::string_view few_ticks = "7 (a) S 1 1 1 0 -1 4 9 0 0 0 30 12 5 6 20 0\n";

TEST_F(FakeProc, TicksCountIfTheKernelHasNoNanoseconds) {
  add_thread("7", {}, few_ticks);
  if (const auto time = measured()) {
    EXPECT_EQ(*time, ticks(42));
  }
  add_thread("8", "0 0 0\n", "8 (b) c) (d) R 1 1 1 0 -1 4 9 0 0 0 500 77 5 6 20 0\n");
  if (const auto time = measured()) {
    EXPECT_EQ(*time, ticks(42 + 577));
  }
}

TEST_F(FakeProc, TheNanosecondsOfAllThreadsAreAdded) {
  add_thread("7", "123456789 5000 3\n", few_ticks);
  add_thread("8", "1000 7 1\n", {});
  if (const auto time = measured()) {
    EXPECT_EQ(*time, Duration(123'457'789));
  }
}

TEST_F(FakeProc, AThreadThatHasJustEndedDoesNotCount) {
  add_thread("7", "1000 7 1\n", few_ticks);
  add_thread("8", {}, {});
  add_thread("9", {}, "9 (without a state");
  add_thread("10", {}, "10 (short) S 1 1 1 0 -1 4 9 0 0 0 30");
  add_thread("11", {}, "11 (words) S 1 1 1 0 -1 4 9 0 0 0 few many 5 6");
  if (const auto time = measured()) {
    EXPECT_EQ(*time, Duration(1000));
  }
}

TEST_F(FakeProc, AProcessWithoutThreadsIsMissing) {
  add_thread("7", {}, {});
  if (const auto time = measured()) {
    EXPECT_EQ(time->error(), Errc::not_found);
  }
}

}  // namespace
}  // namespace weir::bench::process_cpu_time_test
