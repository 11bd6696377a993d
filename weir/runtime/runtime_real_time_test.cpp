// Tests of a runtime with real-time options: its requests, refusals of the platform, and busy
// loops. Child processes without privileges test refusals of the kernel.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/process/scheduling.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::runtime_real_time_test {
namespace {

RuntimeOptions in_real_time(const RealTime& wanted = {}) {
  RuntimeOptions options;
  options.announce = false;
  options.handle_signals = false;
  options.cores = 2;
  options.pin = false;
  options.real_time = wanted;
  return options;
}

Task<> count(Scope&, std::atomic<int>& runs) {
  ++runs;
  co_return;
}

class RealTimeInMemory : public testing::Test {
 protected:
  bool logged(std::string_view text) const {
    return std::ranges::any_of(platform_.logged(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  int run(const RuntimeOptions& options) {
    return Runtime(platform_, options).run_on_each_core(count, std::ref(runs_));
  }
  MemoryPlatform platform_{{.cores = 2}};
  std::atomic<int> runs_ = 0;
};

TEST_F(RealTimeInMemory, ContinuesWithoutLockedMemoryAndLogsTheReason) {
  platform_.fail_memory_lock("the moon is full");
  EXPECT_EQ(run(in_real_time()), 0);
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(platform_.logged(),
            std::vector<std::string>{"weir: memory is not locked: the moon is full"});
}

TEST_F(RealTimeInMemory, FailsIfLockedMemoryIsRequired) {
  platform_.fail_memory_lock("the moon is full");
  EXPECT_EQ(run(in_real_time({.required = true})), 1);
  EXPECT_EQ(runs_, 0);
  EXPECT_TRUE(logged("the moon is full"));
}

TEST_F(RealTimeInMemory, RequestsOnlySelectedSettings) {
  platform_.fail_memory_lock("the moon is full");
  EXPECT_EQ(run(in_real_time({.lock_memory = false, .required = true})), 0);
  RuntimeOptions options = in_real_time();
  options.real_time.reset();
  EXPECT_EQ(run(options), 0);
  EXPECT_EQ(runs_, 4);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(RealTimeInMemory, LogsItsSchedulingAndPolling) {
  RuntimeOptions options = in_real_time({.priority = 7});
  options.announce = true;
  options.busy_poll = true;
  EXPECT_EQ(run(options), 0);
  EXPECT_TRUE(logged("real time: requesting SCHED_FIFO with priority 7")) << "not yet granted";
  EXPECT_TRUE(logged("busy polling"));
}

TEST(RealTimeUnderAQuota, UnpinnedLoopsAreLoggedWithTheNeededSetting) {
  for (const bool real_time : {true, false}) {
    MemoryPlatform platform({.cores = 2, .limited_by_quota = true});
    RuntimeOptions options = in_real_time();
    options.pin = true;
    if (!real_time) options.real_time.reset();
    std::atomic<int> runs = 0;
    EXPECT_EQ(Runtime(platform, options).run_on_each_core(count, std::ref(runs)), 0);
    const auto told = std::ranges::count_if(platform.logged(), [](const std::string& line) {
      return line.find("not pinned") != std::string::npos &&
             line.find("cpuset.cpus") != std::string::npos;
    });
    EXPECT_EQ(told, real_time ? 1 : 0) << "even with `announce` off";
  }
}

TEST_F(RealTimeInMemory, EachCoreAllocatesItsBlocksBeforeItsBodyBegins) {
  std::vector<std::size_t> cached;
  const auto body = [&](Scope& scope) -> Task<> {
    cached.push_back(scope.loop().blocks().cached_bytes());
    co_return;
  };
  const RuntimeOptions options = in_real_time({.pool_bytes = 1 << 20});
  EXPECT_EQ(Runtime(platform_, options).run_on_each_core(body), 0);
  ASSERT_EQ(cached.size(), 2U);
  for (const std::size_t bytes : cached) {
    EXPECT_GE(bytes, BlockPool::caches_free_blocks ? std::size_t{512} * 1024 : 0);
  }
}

// --- on threads ---------------------------------------------------------------------------------

bool may_run_fifo() {
  bool may = false;
  std::thread([&may] { may = os::set_fifo_priority(os::fifo_priority_min).has_value(); }).join();
  return may;
}

TEST(RealTimeOnThreads, OnlyLoopThreadsRunUnderFifo) {
  if (!may_run_fifo()) GTEST_SKIP() << "SCHED_FIFO is not allowed here";
  std::atomic<int> fifo = 0;
  const auto body = [&](Scope&) -> Task<> {
    sched_param now{};
    ::sched_getparam(0, &now);
    if ((::sched_getscheduler(0) & SCHED_FIFO) != 0 && now.sched_priority == 7) ++fifo;
    co_return;
  };
  const RuntimeOptions options =
      in_real_time({.priority = 7, .lock_memory = false, .required = true});
  EXPECT_EQ(Runtime(options).run_on_each_core(body), 0);
  EXPECT_EQ(fifo, 2);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

class LoopsThatStayAwake : public testing::TestWithParam<BackendChoice> {
 protected:
  /// Expects turns of a loop without events: if it slept, no event would wake it.
  static void expect_turns(RuntimeOptions options) {
    options.real_time.reset();
    options.cores = 1;
    options.backend = GetParam();
    Runtime runtime(options);
    std::atomic<Loop*> waiting = nullptr;
    const auto body = [&](Scope& scope) -> Task<> {
      waiting = &scope.loop();
      EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
    };
    std::thread watcher([&] {
      while (waiting == nullptr) std::this_thread::yield();
      const auto& turns = waiting.load()->counters().turns;
      const std::uint64_t before = turns.value();
      while (turns.value() < before + 1000) std::this_thread::yield();
      runtime.stop();
    });
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
    watcher.join();
  }
};
INSTANTIATE_TEST_SUITE_P(, LoopsThatStayAwake,
                         testing::Values(BackendChoice::automatic, BackendChoice::epoll,
                                         BackendChoice::poll));

TEST_P(LoopsThatStayAwake, WithBusyPoll) {
  RuntimeOptions options = in_real_time();
  options.busy_poll = true;
  expect_turns(options);
}

TEST_P(LoopsThatStayAwake, WithBusyWait) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "busy_wait needs two CPUs";
  RuntimeOptions options = in_real_time();
  options.busy_wait = std::chrono::hours(1);
  expect_turns(options);
}

/// Allocates and frees many blocks, and waits until the loop has given them back to the system.
Task<> burst(Scope& scope, std::size_t& cached) {
  BlockPool& blocks = scope.loop().blocks();
  blocks.set_cache_limit(BlockPool::cached_bytes_max);
  std::vector<void*> held(1024);
  for (void*& each : held) each = BlockPool::allocate(16 * 1024);
  for (void* each : held) BlockPool::release(each);
  EXPECT_GT(blocks.cached_bytes(), 8U * 1024 * 1024);
  constexpr std::size_t idle = BlockPool::idle_bytes + BlockPool::block_max;
  for (int count = 0; count < 200 && blocks.cached_bytes() >= idle; ++count) {
    std::ignore = co_await sleep(std::chrono::milliseconds(50));
  }
  cached = blocks.cached_bytes();
  EXPECT_LT(cached, idle);
}

TEST(LoopsThatStayAwakeForASecond, ReturnTheMemoryOfABurst) {
  for (const bool polls : {true, false}) {
    RuntimeOptions options = in_real_time();
    options.real_time.reset();
    options.cores = 1;
    options.busy_poll = polls;
    if (!polls) options.busy_wait = std::chrono::seconds(1);
    std::size_t cached = 0;
    EXPECT_EQ(Runtime(options).run_on_each_core(burst, std::ref(cached)), 0);
    EXPECT_GT(cached, 0U);
  }
}

/// Runs a runtime without privileges in a child process and exits with its status.
[[noreturn]] void run_without_privilege(const RealTime& wanted) {
  for (const auto resource : {RLIMIT_RTPRIO, RLIMIT_MEMLOCK}) {
    const rlimit nothing{0, 0};
    if (::setrlimit(resource, &nothing) != 0) ::_exit(2);
  }
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
  std::atomic<int> runs = 0;
  RuntimeOptions options = in_real_time(wanted);
  options.backend = BackendChoice::epoll;
  const int status = Runtime(options).run_on_each_core(count, std::ref(runs));
  ::_exit(status == 0 ? 10 + runs : status);
}

TEST(RealTimeDeathTest, ContinuesWithoutPrivilegeAndNamesTheSettings) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_privilege({}), testing::ExitedWithCode(12),
              "memory is not locked: .*LimitMEMLOCK=infinity.*\n"
              "weir: SCHED_FIFO with priority 50 refused: .*LimitRTPRIO=50.*\n$");
}

TEST(RealTimeDeathTest, EndsWithoutRequiredPrivilege) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_privilege({.required = true}), testing::ExitedWithCode(1),
              "memory is not locked: .*LimitMEMLOCK=infinity.*\n$");
  EXPECT_EXIT(run_without_privilege({.lock_memory = false, .required = true}),
              testing::ExitedWithCode(1),
              "SCHED_FIFO with priority 50 refused: .*\nweir: cannot run: .*\n$");
}

}  // namespace
}  // namespace weir::runtime_real_time_test
