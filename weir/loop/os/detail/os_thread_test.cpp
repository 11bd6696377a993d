// Tests of OsThread: steps, end, stack, priority, signals, state.
#include "weir/loop/os/detail/os_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <semaphore>
#include <thread>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/machine/affinity.hpp"

namespace weir::loop::os_thread_test {
namespace {

struct Work final : ThreadWork {
  explicit Work(std::function<std::optional<Instant>(int)> each) : each_step(std::move(each)) {}
  std::optional<Instant> step() noexcept override { return each_step(steps++); }
  std::function<std::optional<Instant>(int)> each_step;
  int steps = 0;
};

TEST(OsThread, StepsWhenWokenAndAtItsDeadline) {
  OsPlatform platform;
  std::counting_semaphore<> stepped(0);
  Work work([&](int step) -> std::optional<Instant> {
    if (step == 2) return after(platform.now(), 1ms);
    if (step == 3) return Instant::min();
    stepped.release();
    return never;
  });
  const auto thread = platform.make_thread({.name = "test"}, work);
  thread->wake();  // not started yet
  ASSERT_TRUE(thread->start());
  stepped.acquire();  // the first step, and the second for the wake() before the start
  stepped.acquire();
  thread->wake();  // the third; its deadline causes the fourth, and the fourth the fifth
  stepped.acquire();
}

TEST(OsThread, EndsAfterItsLastStepOrWhenDestroyed) {
  OsPlatform platform;
  std::binary_semaphore stepped(0);
  Work once([&](int) -> std::optional<Instant> {
    stepped.release();
    return std::nullopt;
  });
  Work resting([&](int) -> std::optional<Instant> {
    stepped.release();
    return never;
  });
  for (Work* const work : {&once, &resting}) {
    const auto thread = platform.make_thread({.name = "test"}, *work);
    ASSERT_TRUE(thread->start());
    stepped.acquire();
    thread->wake();
  }
  EXPECT_EQ(once.steps, 1);
  const auto not_started = platform.make_thread({.name = "test"}, once);
}

TEST(OsThread, HasTheRequestedStackSize) {
  OsPlatform platform;
  const auto stack_of = [&](std::size_t wanted) {
    std::size_t size = 0;
    std::binary_semaphore stepped(0);
    Work work([&](int) -> std::optional<Instant> {
      pthread_attr_t attributes;
      ::pthread_getattr_np(::pthread_self(), &attributes);
      ::pthread_attr_getstacksize(&attributes, &size);
      ::pthread_attr_destroy(&attributes);
      stepped.release();
      return std::nullopt;
    });
    const auto thread = platform.make_thread(
        {.name = "test", .priority = ThreadPriority::normal, .stack_bytes = wanted}, work);
    EXPECT_TRUE(thread->start());
    stepped.acquire();
    return size;
  };
  // The C library may reuse a stack that is up to four times as large.
  constexpr std::size_t mebibyte = 1 << 20;
  EXPECT_LT(stack_of(mebibyte / 4), 2 * mebibyte);
  EXPECT_LT(stack_of(PlatformThreadOptions::stack_bytes_usual), 5 * mebibyte);
  EXPECT_GT(stack_of(30 * mebibyte), 29 * mebibyte);
  EXPECT_GT(stack_of(0), 0U) << "the minimum of a thread";
}

TEST(OsThread, RunsWithTheRequestedPriority) {
  OsPlatform platform;
  for (const ThreadPriority priority : {ThreadPriority::normal, ThreadPriority::background}) {
    int policy = -1;
    std::binary_semaphore stepped(0);
    Work work([&](int) -> std::optional<Instant> {
      policy = ::sched_getscheduler(0);
      stepped.release();
      return std::nullopt;
    });
    const auto thread = platform.make_thread({.name = "test", .priority = priority}, work);
    ASSERT_TRUE(thread->start());
    stepped.acquire();
    EXPECT_EQ(policy == SCHED_BATCH, priority == ThreadPriority::background);
  }
}

TEST(OsThread, TakesNoSignalsAndIsNotPinnedLikeItsStarter) {
  const std::vector<int> allowed = os::allowed_cpus();
  OsPlatform platform;
  ASSERT_TRUE(os::pin_current_thread(allowed.back()));
  std::vector<int> seen;
  sigset_t mask;
  std::binary_semaphore stepped(0);
  Work work([&](int) -> std::optional<Instant> {
    seen = os::allowed_cpus();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    stepped.release();
    return std::nullopt;
  });
  const auto thread = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(thread->start());
  stepped.acquire();
  ASSERT_TRUE(os::set_allowed_cpus(allowed));
  EXPECT_EQ(seen, allowed);
  for (const int of_others : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD, SIGPIPE}) {
    EXPECT_EQ(::sigismember(&mask, of_others), 1) << of_others;
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    EXPECT_EQ(::sigismember(&mask, own), 0) << own;
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0) << "the starter's mask is unchanged";
}

TEST(OsThread, HasItsName) {
  OsPlatform platform;
  std::array<char, 16> name{};
  std::binary_semaphore stepped(0);
  Work work([&](int) -> std::optional<Instant> {
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    stepped.release();
    return std::nullopt;
  });
  const auto thread = platform.make_thread({.name = "weir-name-of-16+"}, work);
  EXPECT_EQ(thread->state(), os::ThreadState::running) << "it waits for its start";
  ASSERT_TRUE(thread->start());
  stepped.acquire();
  EXPECT_STREQ(name.data(), "weir-name-of-16");
}

TEST(OsThread, RunsNoStepAfterItsEnd) {
  OsPlatform platform;
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> ended = false;
    std::binary_semaphore stepped(0);
    Work work([&](int step) -> std::optional<Instant> {
      EXPECT_FALSE(ended);
      if (step == 0) stepped.release();
      return Instant::min();
    });
    auto thread = platform.make_thread({.name = "test"}, work);
    ASSERT_TRUE(thread->start());
    stepped.acquire();
    thread.reset();
    ended = true;
  }
}

TEST(OsThread, LetsOtherThreadsSpinAfterItHasSpun) {
  SpinPermit permit(2);
  std::binary_semaphore ended(0);
  Work work([&](int step) -> std::optional<Instant> {
    if (step == 0) return after(os::monotonic_now(), 1ms);
    ended.release();
    return std::nullopt;
  });
  {
    OsThread thread({.name = "test"}, work, {}, permit);
    ASSERT_TRUE(thread.start());
    ended.acquire();
  }
  EXPECT_TRUE(permit.try_acquire());
}

/// Returns the CPU time of a thread that sleeps before each of `calls` calls.
Duration cpu_time_of_late_calls(SpinPermit& permit, int calls) {
  std::counting_semaphore<> stepped(0);
  Work work([&](int) -> std::optional<Instant> {
    stepped.release();
    return never;
  });
  OsThread thread({.name = "test"}, work, {}, permit);
  EXPECT_TRUE(thread.start());
  for (int call = 0; call < calls; ++call) {
    stepped.acquire();
    while (thread.state() != os::ThreadState::blocked) std::this_thread::yield();
    thread.wake();
  }
  stepped.acquire();
  return thread.cpu_time();
}

// A thread that spins in vain each time always uses twice this CPU time. Other programs may add to
// the CPU time of a measurement, so the least of several counts.
TEST(OsThread, SpinsSeldomIfItsCallsComeLate) {
  constexpr int calls = 1000;
  constexpr Duration limit = calls * AdaptiveSpinner::spin_max / 2;
  Duration least = Duration::max();
  for (int measurement = 0; measurement < 10 && least >= limit; ++measurement) {
    SpinPermit none(1);
    SpinPermit permit(2);
    const Duration without_spins = cpu_time_of_late_calls(none, calls);
    least = std::min(least, cpu_time_of_late_calls(permit, calls) - without_spins);
  }
  EXPECT_LT(least, limit);
}

TEST(OsThread, ReportsItsStateAndCpuTime) {
  OsPlatform platform;
  std::atomic<bool> spin = true;
  Work work([&](int) -> std::optional<Instant> {
    while (spin) {
    }
    return never;
  });
  const auto thread = platform.make_thread({.name = "test"}, work);
  EXPECT_EQ(thread->cpu_time(), Duration(0));
  ASSERT_TRUE(thread->start());
  while (thread->cpu_time() < 1ms) {
  }
  EXPECT_EQ(thread->state(), os::ThreadState::running);
  spin = false;
  while (thread->state() != os::ThreadState::blocked) {
  }
}

}  // namespace
}  // namespace weir::loop::os_thread_test
