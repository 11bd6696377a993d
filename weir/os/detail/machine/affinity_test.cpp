// Tests that the kernel applies pinning and that the old mask undoes it.
#include "weir/os/detail/machine/affinity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/cpu_list.hpp"
#include "weir/os/test/denied_call.hpp"

namespace weir::os::affinity_test {
namespace {

using testing::ElementsAre;

TEST(Affinity, PinsAndRestores) {
  std::thread([] {
    const std::vector<int> before = allowed_cpus();
    ASSERT_FALSE(before.empty());
    ASSERT_TRUE(pin_current_thread(before.back()));
    EXPECT_THAT(allowed_cpus(), ElementsAre(before.back()));
    EXPECT_EQ(::sched_getcpu(), before.back());
    ASSERT_TRUE(set_allowed_cpus(before));
    EXPECT_EQ(allowed_cpus(), before);
  }).join();
}

TEST(Affinity, AgreesWithProc) {
  const std::string status = read_text_file("/proc/thread-self/status").value();
  const auto line = status.find("Cpus_allowed_list:\t") + 19;
  const std::string text = status.substr(line, status.find('\n', line) - line);
  EXPECT_EQ(format_cpu_list(allowed_cpus()), text);
}

TEST(Affinity, AffectsOnlyTheCallingThread) {
  const std::vector<int> before = allowed_cpus();
  std::thread([&] { ASSERT_TRUE(pin_current_thread(before.front())); }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Affinity, PinsToEachAllowedCpu) {
  std::thread([] {
    const std::vector<int> before = allowed_cpus();
    for (const int cpu : before) {
      ASSERT_TRUE(pin_current_thread(cpu));
      EXPECT_THAT(allowed_cpus(), ElementsAre(cpu));
      ASSERT_TRUE(set_allowed_cpus(before));
    }
  }).join();
}

TEST(Affinity, RejectsMissingCpus) {
  EXPECT_EQ(pin_current_thread(65535).error(), system_error(EINVAL));
  EXPECT_EQ(pin_current_thread(-1).error(), system_error(EINVAL));
  EXPECT_EQ(pin_current_thread(65536).error(), system_error(EINVAL));
  EXPECT_EQ(pin_current_thread(1 << 20).error(), system_error(EINVAL));
  EXPECT_EQ(set_allowed_cpus({}).error(), system_error(EINVAL));
}

/// Ends this (child) process with 0 if allowed_cpus() returns `expected` on a kernel whose mask is
/// longer than `bytes_max`. The kernel then rejects shorter masks.
[[noreturn]] void read_longer_mask(std::uint32_t bytes_max, const std::vector<int>& expected) {
  for (std::uint32_t bytes = 1024 / 8; bytes <= bytes_max; bytes *= 2) {
    if (!deny({SYS_sched_getaffinity, 1, bytes}, EINVAL)) ::_exit(2);
  }
  ::_exit(allowed_cpus() == expected ? 0 : 1);
}

TEST(AffinityDeathTest, TheMaskOfTheKernelMayBeLonger) {
  const std::vector<int> expected = allowed_cpus();
  for (const std::uint32_t cpus : {1024U, 2048U, 32768U}) {
    EXPECT_EXIT(read_longer_mask(cpus / 8, expected), testing::ExitedWithCode(0), "") << cpus;
  }
  EXPECT_EXIT(read_longer_mask(65536 / 8, {}), testing::ExitedWithCode(0), "");
}

/// Ends this (child) process with 0 if affinity cannot be read or set.
[[noreturn]] void fail_to_pin() {
  const std::vector<int> before = allowed_cpus();
  if (!deny({SYS_sched_setaffinity, 0, 0}, EPERM)) ::_exit(2);
  const auto pinned = pin_current_thread(before.front());
  if (pinned || pinned.error() != system_error(EPERM)) ::_exit(3);
  if (!deny({SYS_sched_getaffinity, 0, 0}, EPERM)) ::_exit(4);
  ::_exit(allowed_cpus().empty() ? 0 : 5);
}

TEST(AffinityDeathTest, ARefusalIsAnErrorOrAnEmptyList) {
  EXPECT_EXIT(fail_to_pin(), testing::ExitedWithCode(0), "");
}

TEST(ThreadName, IsSetInTheKernelAndCut) {
  std::thread([] {
    set_current_thread_name("weir-core-3");
    EXPECT_EQ(read_text_file("/proc/thread-self/comm").value(), "weir-core-3");
    set_current_thread_name("a-name-that-is-much-too-long");
    EXPECT_EQ(read_text_file("/proc/thread-self/comm").value(), "a-name-that-is-");
  }).join();
}

}  // namespace
}  // namespace weir::os::affinity_test
