// Tests of scheduling policies and locked memory in child processes, with and without privileges.
#include "weir/os/detail/process/scheduling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::scheduling_test {
namespace {

using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

int policy_of_this_thread() {
  return ::sched_getscheduler(0);
}

/// Ends this (child) process with 0 if `holds`, and prints a line with the system's answer.
[[noreturn]] void finish(bool holds, const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  ::_exit(holds ? 0 : 1);
}

/// Removes the privileges of this process to lock memory and to run in real time, and sets limits.
void give_up_privileges(__rlimit_resource resource, rlim_t limit) {
  const rlimit wanted{limit, limit};
  if (::setrlimit(resource, &wanted) != 0) ::_exit(2);
  // The real user changes too, so that the privileges cannot be regained.
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
}

/// Returns true if this process may use SCHED_FIFO. Some cgroups forbid it even to root.
bool may_run_fifo() {
  bool may = false;
  std::thread([&may] { may = set_fifo_priority(fifo_priority_min).has_value(); }).join();
  return may;
}

/// Returns true if the hard limit of real-time priorities can be raised. The limit is restored.
bool may_raise_limits() {
  rlimit before{};
  ::getrlimit(RLIMIT_RTPRIO, &before);
  if (before.rlim_max == RLIM_INFINITY) return true;
  const rlimit raised{before.rlim_cur, before.rlim_max + 1};
  return ::setrlimit(RLIMIT_RTPRIO, &raised) == 0 && ::setrlimit(RLIMIT_RTPRIO, &before) == 0;
}

[[noreturn]] void run_fifo_and_start_another() {
  const auto done = set_fifo_priority(3);
  if (!done) finish(false, done.error().message());
  sched_param now{};
  ::sched_getparam(0, &now);
  const int own = policy_of_this_thread();
  int others = -1;
  std::thread([&others] { others = policy_of_this_thread(); }).join();
  finish(
      own == (SCHED_FIFO | SCHED_RESET_ON_FORK) && now.sched_priority == 3 && others == SCHED_OTHER,
      "policies " + std::to_string(own) + " and " + std::to_string(others));
}

TEST(RealTimeDeathTest, AThreadUsesFifoButItsNewThreadsDoNot) {
  if (!may_run_fifo()) GTEST_SKIP() << "not allowed here";
  EXPECT_EXIT(run_fifo_and_start_another(), testing::ExitedWithCode(0), "policies");
}

[[noreturn]] void run_fifo_without_privilege(rlim_t limit, int priority) {
  give_up_privileges(RLIMIT_RTPRIO, limit);
  const auto refused = set_fifo_priority(priority);
  if (refused) finish(false, "it was allowed");
  finish(policy_of_this_thread() == SCHED_OTHER, explain_fifo_error(refused.error(), priority));
}

TEST(RealTimeDeathTest, ARefusalNamesTheLimitAndTheSettings) {
  EXPECT_EXIT(run_fifo_without_privilege(0, 50), testing::ExitedWithCode(0),
              "^Operation not permitted \\(RLIMIT_RTPRIO is 0: use ulimit -r 50, "
              "LimitRTPRIO=50 in a systemd unit, or the capability CAP_SYS_NICE\\)\n$");
}

[[noreturn]] void run_fifo_by_the_limit() {
  const rlimit soft{0, 7};
  ::setrlimit(RLIMIT_RTPRIO, &soft);
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
  const auto done = set_fifo_priority(7);
  finish(done.has_value(), done ? "allowed" : done.error().message());
}

TEST(RealTimeDeathTest, TheHardLimitIsEnough) {
  if (!may_raise_limits()) GTEST_SKIP() << "the limit cannot be set here";
  EXPECT_EXIT(run_fifo_without_privilege(7, 8), testing::ExitedWithCode(0),
              "RLIMIT_RTPRIO is 7: use ulimit -r 8");
  if (!may_run_fifo()) GTEST_SKIP() << "not allowed here";
  EXPECT_EXIT(run_fifo_by_the_limit(), testing::ExitedWithCode(0), "allowed");
}

TEST(RealTime, RejectsInvalidPriorities) {
  for (const int priority : {-1, 0, fifo_priority_max + 1}) {
    const auto refused = set_fifo_priority(priority);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), system_error(EINVAL));
    EXPECT_EQ(explain_fifo_error(refused.error(), priority), "Invalid argument");
  }
  EXPECT_EQ(policy_of_this_thread(), SCHED_OTHER);
}

TEST(RealTime, APrivilegedRefusalNamesTheCgroupOrASeccompProfile) {
  const TemporaryTree tree;
  tree.write("proc/thread-self/status", "Name:\ttest\nCapEff:\t0000000000800000\nSeccomp:\t0\n");
  const auto refused = system_error(EPERM);
  const std::string unknown =
      "Operation not permitted (the privileges are sufficient: check for a seccomp profile, or for "
      "a kernel that allows real time only in the root cgroup)";
  EXPECT_EQ(explain_fifo_error(refused, 50, tree.root()), unknown);
  tree.write("proc/self/cgroup", "1:cpu,cpuacct:/a/b\n");
  tree.write("sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us", "0\n");
  tree.write("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n");
  EXPECT_EQ(explain_fifo_error(refused, 50, tree.root()),
            "Operation not permitted (cpu.rt_runtime_us of its cgroup is 0: raise it or use "
            "another cgroup)");
  tree.write("sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us", "-1\n");
  EXPECT_EQ(explain_fifo_error(refused, 50, tree.root()), unknown);
}

/// Sets the soft limit on real-time priorities to 0 while it exists.
class NoRealTime {
 public:
  NoRealTime() {
    ::getrlimit(RLIMIT_RTPRIO, &before_);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_RTPRIO, &none), 0);
  }
  NoRealTime(const NoRealTime&) = delete;
  NoRealTime& operator=(const NoRealTime&) = delete;
  ~NoRealTime() { ::setrlimit(RLIMIT_RTPRIO, &before_); }

 private:
  rlimit before_{};
};

TEST(RealTime, ARefusalNamesTheLimitWithoutTheCapability) {
  const NoRealTime limit;
  const auto refused = system_error(EPERM);
  const TemporaryTree tree;
  const auto explain = [&](int priority) {
    return explain_fifo_error(refused, priority, tree.root());
  };
  EXPECT_THAT(explain(1), HasSubstr("RLIMIT_RTPRIO is 0")) << "/proc cannot be read";
  for (const char* status :
       {"Name:\ttest\n", "Name:\ttest\nCapEff:\t0000000000000000\nSeccomp:\t0\n",
        "Name:\ttest\nCapEff:\tffffffffff7fffff\nSeccomp:\t0\n", "Name:\ttest\nCapEff:\tnone\n"}) {
    tree.write("proc/thread-self/status", status);
    EXPECT_THAT(explain(1), HasSubstr("RLIMIT_RTPRIO is 0")) << status;
    EXPECT_THAT(explain(0), HasSubstr("seccomp")) << "the limit allows this priority";
  }
  tree.write("proc/thread-self/status", "Name:\ttest\nCapEff:\t0000000000800000");
  EXPECT_THAT(explain(1), HasSubstr("seccomp"));
}

TEST(RealTime, ALockThatFailsIsExplained) {
  const TemporaryTree tree;
  const auto no_memory = system_error(ENOMEM);
  const auto refused = system_error(EPERM);
  tree.write("proc/thread-self/status", "Name:\ttest\nCapEff:\t0000000000004000\n");
  EXPECT_EQ(explain_lock_error(no_memory, tree.root()),
            "Cannot allocate memory (not enough memory)");
  EXPECT_EQ(explain_lock_error(refused, tree.root()), "Operation not permitted");
  tree.write("proc/thread-self/status", "Name:\ttest\nCapEff:\tffffffffffffbfff\n");
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) GTEST_SKIP() << "locked memory is not limited here";
  EXPECT_THAT(explain_lock_error(no_memory, tree.root()), HasSubstr("RLIMIT_MEMLOCK is "));
}

[[noreturn]] void lock_with_a_low_soft_limit(rlim_t hard) {
  const rlimit low{0, hard};
  ::setrlimit(RLIMIT_MEMLOCK, &low);
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
  const auto refused = lock_memory();
  if (refused) finish(false, "it was allowed");
  finish(true, explain_lock_error(refused.error()));
}

TEST(RealTimeDeathTest, LockingRaisesTheSoftLimitToTheHardLimit) {
  EXPECT_EXIT(lock_with_a_low_soft_limit(65536), testing::ExitedWithCode(0),
              "RLIMIT_MEMLOCK is 65536 bytes");
}

[[noreturn]] void lock_with_privilege() {
  const auto locked = lock_memory();
  finish(locked.has_value(), locked ? "locked" : explain_lock_error(locked.error()));
}

TEST(RealTimeDeathTest, LocksMemoryWithThePrivilege) {
  if (::geteuid() != 0) GTEST_SKIP() << "not allowed here";
  EXPECT_EXIT(lock_with_privilege(), testing::ExitedWithCode(0), "locked");
}

[[noreturn]] void lock_without_privilege(rlim_t limit) {
  give_up_privileges(RLIMIT_MEMLOCK, limit);
  const auto refused = lock_memory();
  if (refused) finish(false, "it was allowed");
  finish(true, explain_lock_error(refused.error()));
}

TEST(RealTimeDeathTest, DoesNotLockLimitedMemory) {
  EXPECT_EXIT(lock_without_privilege(65536), testing::ExitedWithCode(0),
              "^Operation not permitted \\(RLIMIT_MEMLOCK is 65536 bytes: use ulimit -l "
              "unlimited, LimitMEMLOCK=infinity in a systemd unit, or the capability "
              "CAP_IPC_LOCK\\)\n$");
}

[[noreturn]] void lock_and_get_more() {
  if (const auto locked = lock_memory(); !locked) finish(false, locked.error().message());
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const more =
      ::mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char there[8] = {};
  const bool told = more != MAP_FAILED && ::mincore(more, 8 * page, there) == 0;
  int resident = 0;
  for (const unsigned char each : there) resident += each & 1;
  finish(told && resident == 8, std::to_string(resident) + " of 8 pages");
}

TEST(RealTimeDeathTest, LaterMappingsAreResidentBeforeTheirFirstUse) {
  if (sanitized) GTEST_SKIP() << "sanitizers do not lock memory: their shadow is too large";
  if (::geteuid() != 0) GTEST_SKIP() << "not allowed here";
  EXPECT_EXIT(lock_and_get_more(), testing::ExitedWithCode(0), "8 of 8 pages");
}

}  // namespace

namespace {

int niceness_of(pid_t thread) {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
}

/// Returns the slice of the calling thread in nanoseconds; 0 before Linux 6.12.
std::uint64_t slice_of_this_thread() {
  std::array<std::uint64_t, 7> attributes{};  // the slice is at offset 24 of 56 bytes
  const auto size = static_cast<unsigned>(sizeof attributes);
  return ::syscall(SYS_sched_getattr, 0, attributes.data(), size, 0) == 0 ? attributes[3] : 0;
}

TEST(Background, SetsSlicesOfFiveMilliseconds) {
  const std::uint64_t usual = slice_of_this_thread();
  if (usual == 0) GTEST_SKIP() << "this kernel has no slices of threads";
  std::thread([] {
    ASSERT_TRUE(set_background_priority());
    EXPECT_EQ(slice_of_this_thread(), 5'000'000U);
  }).join();
  EXPECT_EQ(slice_of_this_thread(), usual) << "only the other thread changed";
}

TEST(Background, SetsNicenessAndPolicyOfTheThreadAndItsNewThreads) {
  const int expected = std::min(niceness_of(::getpid()) + background_nice_increment, 19);
  const auto look = [&] {
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
    EXPECT_EQ(niceness_of(::gettid()), expected);
  };
  std::thread([&] {
    ASSERT_TRUE(set_background_priority());
    look();
    std::thread([&] {
      look();
      ASSERT_TRUE(set_background_priority());  // no further increment
      look();
    }).join();
  }).join();
  EXPECT_NE(::sched_getscheduler(0), SCHED_BATCH) << "only the other threads changed";
}

/// Ends this (child) process with 0 if background priority is refused and nothing has changed.
[[noreturn]] void fail_to_set_background_priority() {
  if (!deny({SYS_sched_setattr, 0, 0}, EPERM)) ::_exit(2);
  const int niceness = niceness_of(::gettid());
  const auto refused = set_background_priority();
  if (refused || refused.error() != system_error(EPERM)) ::_exit(3);
  ::_exit(policy_of_this_thread() == SCHED_OTHER && niceness_of(::gettid()) == niceness ? 0 : 4);
}

TEST(BackgroundDeathTest, ARefusalIsAnErrorThatChangesNothing) {
  EXPECT_EXIT(fail_to_set_background_priority(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::os::scheduling_test
