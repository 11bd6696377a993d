// Tests of a pool on the operating system's threads: blocking, stopping and sharing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/process/thread_probe.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/records_its_end.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::blocking_pool_threads_test {
namespace {

BlockingPoolOptions fixed(std::size_t size) {
  BlockingPoolOptions options;
  options.size.fixed = size;
  return options;
}

/// A platform that allows enough threads for a test, even if this machine allows few.
BlockingPoolOptions automatic(std::size_t max) {
  BlockingPoolOptions options;
  options.size.max = max;
  return options;
}

class BlockingPoolThreads : public testing::Test {
 protected:
  template <class T>
  T run(Task<T> task) {
    return weir::run(*loop_, std::move(task));
  }
  OsPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {.backend = BackendChoice::epoll}).value();
};

TEST_F(BlockingPoolThreads, RunsOnAnotherThreadAndResumesOnTheLoop) {
  BlockingPool pool(platform_);
  const auto body = [](BlockingPool& pool, Loop* owner_loop) -> Task<> {
    const auto home_thread = std::this_thread::get_id();
    const auto where = [] { return std::pair(std::this_thread::get_id(), os::allowed_cpus()); };
    const auto there = co_await pool.run(where);
    EXPECT_NE(there->first, home_thread);
    EXPECT_EQ(std::this_thread::get_id(), home_thread);
    EXPECT_EQ(Loop::current(), owner_loop);
  };
  run(body(pool, loop_.get()));
}

TEST_F(BlockingPoolThreads, FunctionsAndArgumentsAreDestroyedOnTheCallersLoop) {
  BlockingPool pool(platform_);
  const auto body = [&]() -> Task<> {
    const auto home = std::this_thread::get_id();
    std::vector<std::thread::id> ends;
    RecordsItsEnd function(ends, std::this_thread::get_id);
    EXPECT_NE((co_await pool.run(std::move(function))).value(), home);
    EXPECT_EQ(ends, std::vector(1, home));
    const auto call = [](const RecordsItsEnd<std::thread::id>& argument) { return argument(); };
    RecordsItsEnd argument(ends, std::this_thread::get_id);
    EXPECT_NE((co_await pool.run(call, std::move(argument))).value(), home);
    EXPECT_EQ(ends, std::vector(2, home));
  };
  run(body());
}

TEST_F(BlockingPoolThreads, ThreadsAreNotPinnedToTheCallersCore) {
  const std::vector<int> allowed = os::allowed_cpus();
  BlockingPool pool(platform_);
  const auto body = [](BlockingPool& pool, std::vector<int> expected) -> Task<> {
    EXPECT_TRUE(os::pin_current_thread(expected.front()));
    const auto where = [] { return os::allowed_cpus(); };
    EXPECT_EQ((co_await pool.run(where)).value(), expected);
    EXPECT_TRUE(os::set_allowed_cpus(expected));
  };
  run(body(pool, allowed));
  EXPECT_EQ(platform_.topology().cpus_allowed, allowed.size());
}

TEST_F(BlockingPoolThreads, AFixedSizeLimitsConcurrentCalls) {
  constexpr int size = 5;
  BlockingPool pool(platform_, fixed(size));
  std::atomic<int> present = 0;
  std::atomic<int> most = 0;
  std::latch all_there(size);
  const auto meet = [&](int index) {
    const int now = ++present;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    if (index < size) all_there.arrive_and_wait();  // hangs unless all five run together
    --present;
  };
  const auto body = [&]() -> Task<> {
    std::vector<Task<Result<>>> calls;
    for (int i = 0; i < 200; ++i) calls.push_back(pool.run(meet, i));
    EXPECT_TRUE(co_await all(std::move(calls)));
  };
  run(body());
  EXPECT_EQ(most, size);
  const PoolReport report = pool.report();
  EXPECT_EQ(report.threads, static_cast<std::size_t>(size));
  EXPECT_EQ(report.lanes[0].finished, 200U);
  EXPECT_EQ(report.lanes[0].queue_wait.count, 200U);
  EXPECT_GT(report.lanes[0].queue_wait.longest, Duration(0));
}

TEST_F(BlockingPoolThreads, RunningWorkIsAskedToStopAndAwaited) {
  BlockingPool pool(platform_, fixed(1));
  std::atomic<bool> began = false;
  std::atomic<bool> ended = false;
  const auto until_stopped = [&](std::stop_token stop, int value) {
    began = true;
    std::binary_semaphore asked(0);
    const std::stop_callback callback(stop, [&] { asked.release(); });
    asked.acquire();
    ended = true;
    return value;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    const auto work = [&](Task<Result<int>> call) -> Task<> {
      const auto value = co_await std::move(call);
      EXPECT_TRUE(ended);
      EXPECT_EQ(value.value(), 5) << "a completion beats a cancellation";
    };
    scope.spawn(work(pool.run(until_stopped, 5)));
    while (!began) co_await yield();
    scope.cancel();
  };
  static_cast<void>(run(with_scope(body)));
}

TEST_F(BlockingPoolThreads, RunningWorkWithoutATokenIsAwaited) {
  BlockingPool pool(platform_, fixed(1));
  std::binary_semaphore go(0);
  std::atomic<bool> began = false;
  const auto stubborn = [&] {
    began = true;
    go.acquire();
  };
  const auto body = [&](Scope& scope) -> Task<> {
    const auto outcome = [](Task<Result<>> work, bool& done) -> Task<> {
      EXPECT_TRUE(co_await std::move(work));
      done = true;
    };
    bool done = false;
    bool never_called = false;
    const auto nothing = [&] { never_called = true; };
    const auto refused = [](Task<Result<>> work) -> Task<> {
      EXPECT_EQ((co_await std::move(work)).error(), Errc::cancelled);
    };
    scope.spawn(outcome(pool.run(stubborn), done));
    scope.spawn(refused(pool.run(nothing)));
    while (!began) co_await yield();
    scope.cancel();
    for (int i = 0; i < 10; ++i) co_await yield();
    EXPECT_FALSE(done);
    EXPECT_EQ(pool.report().running, 1U);
    EXPECT_EQ(pool.report().queued, 0U);
    go.release();
    while (!done) co_await yield();
    EXPECT_FALSE(never_called);
  };
  static_cast<void>(run(with_scope(body)));
}

TEST_F(BlockingPoolThreads, TheDestructorCancelsQueuedWorkAndAwaitsRunningWork) {
  std::atomic<bool> began = false;
  bool called = false;
  const auto until_stopped = [&](std::stop_token stop) {
    began = true;
    std::binary_semaphore asked(0);
    const std::stop_callback callback(stop, [&] { asked.release(); });
    asked.acquire();
    return 5;
  };
  const auto never_called = [&] {
    called = true;
    return 6;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    const auto stopped = [](Task<Result<int>> work) -> Task<> {
      EXPECT_EQ((co_await std::move(work)).value(), 5);
    };
    const auto refused = [](Task<Result<int>> work) -> Task<> {
      EXPECT_EQ((co_await std::move(work)).error(), Errc::cancelled);
    };
    BlockingPool pool(platform_, fixed(1));
    scope.spawn(stopped(pool.run(until_stopped)));
    while (!began) co_await yield();
    for (int i = 0; i < 3; ++i) scope.spawn(refused(pool.run(never_called)));
  };
  static_cast<void>(run(with_scope(body)));
  EXPECT_FALSE(called);
}

/// A platform that makes the next thread only when the test allows it, once the test has asked for
/// that.
class SlowThreadPlatform final : public OsPlatform {
 public:
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override {
    if (holds_next.exchange(false)) {
      begun.release();
      allowed.acquire();
    }
    return OsPlatform::make_thread(options, work);
  }
  std::atomic<bool> holds_next = false;
  std::binary_semaphore begun{0};
  std::binary_semaphore allowed{0};
};

TEST_F(BlockingPoolThreads, TheDestructorClosesThePoolBeforeItWaitsForAStartingThread) {
  SlowThreadPlatform platform;
  std::atomic<bool> began = false;
  const auto until_stopped = [&](std::stop_token stop) {
    began = true;
    std::binary_semaphore asked(0);
    const std::stop_callback callback(stop, [&] { asked.release(); });
    asked.acquire();
    platform.allowed.release();
  };
  const auto nothing = [] {};
  const auto body = [&](Scope& scope) -> Task<> {
    const auto outcome = [](Task<Result<>> call, std::error_code expected) -> Task<> {
      const Result<> done = co_await std::move(call);
      EXPECT_EQ(done ? std::error_code() : done.error(), expected);
    };
    BlockingPool pool(platform, fixed(1));
    scope.spawn(outcome(pool.run(until_stopped), {}));
    while (!began) co_await yield();
    scope.spawn(outcome(pool.run(nothing), Errc::cancelled));
    platform.holds_next = true;
    pool.resize(fixed(2).size);
    platform.begun.acquire();  // the controller starts a thread for the queued call
  };
  static_cast<void>(run(with_scope(body)));
}

/// A platform that counts the threads that are made or started by a thread that runs a loop.
class StartCountingPlatform final : public OsPlatform {
 public:
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override {
    count();
    return std::make_unique<CountedThread>(OsPlatform::make_thread(options, work), *this);
  }
  std::atomic<int> on_loops = 0;
  std::atomic<int> elsewhere = 0;

 private:
  class CountedThread final : public loop::PlatformThread {
   public:
    CountedThread(std::unique_ptr<loop::PlatformThread> thread,
                  StartCountingPlatform& platform) noexcept
        : thread_(std::move(thread)), platform_(platform) {}
    Result<> start() override {
      platform_.count();
      return thread_->start();
    }
    void wake() noexcept override { thread_->wake(); }
    Duration cpu_time() noexcept override { return thread_->cpu_time(); }
    os::ThreadState state() noexcept override { return thread_->state(); }

   private:
    std::unique_ptr<loop::PlatformThread> thread_;
    StartCountingPlatform& platform_;
  };
  void count() { ++(Loop::current() != nullptr ? on_loops : elsewhere); }
};

TEST_F(BlockingPoolThreads, ASubmissionStartsNoThreadOnItsLoop) {
  StartCountingPlatform platform;
  const auto nothing = [] {};
  BlockingPool pool(platform, fixed(8));
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    std::vector<Task<Result<>>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(pool.run(nothing));
    WEIR_CO_TRY(co_await all(std::move(calls)));
    // Files use the shared pool of the runtime.
    co_return co_await shared_pool(scope.loop()).pool().run(nothing);
  };
  RuntimeOptions options;
  options.announce = false;
  options.cores = 2;
  options.pin = false;
  EXPECT_EQ(Runtime(platform, options).run_on_each_core(body), 0);
  EXPECT_EQ(platform.on_loops, 0);
  EXPECT_GT(platform.elsewhere, 0);
}

TEST_F(BlockingPoolThreads, SlowWorkLeavesThreadsToOtherWork) {
  BlockingPool pool(platform_, fixed(4));
  const PoolLane slow = pool.add_lane({.name = "slow", .priority = 9, .share_max = 0.5});
  std::counting_semaphore<> go(0);
  std::atomic<int> inside = 0;
  const auto look_up = [&] {
    ++inside;
    go.acquire();
    --inside;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    const auto work = [](Task<Result<>> call) -> Task<> { EXPECT_TRUE(co_await std::move(call)); };
    for (int i = 0; i < 20; ++i) scope.spawn(work(slow.run(look_up)));
    const auto read = [](int value) { return value; };
    for (int i = 0; i < 200; ++i) EXPECT_EQ((co_await pool.run(read, i)).value(), i);
    while (inside != 2) co_await yield();
    EXPECT_EQ(pool.report().lanes.at(1).running, 2U);
    EXPECT_EQ(pool.report().lanes.at(1).queued, 18U);
    go.release(20);
  };
  static_cast<void>(run(with_scope(body)));
  EXPECT_EQ(pool.report().lanes.at(1).finished, 20U);
  EXPECT_EQ(pool.report().lanes.at(1).name, "slow");
}

TEST_F(BlockingPoolThreads, AFixedSizeCanBeChanged) {
  BlockingPool pool(platform_, fixed(1));
  const auto body = [&](Scope& scope) -> Task<> {
    const auto work = [](Task<Result<>> call) -> Task<> { EXPECT_TRUE(co_await std::move(call)); };
    std::latch all_there(8);
    const auto meet = [&] { all_there.arrive_and_wait(); };
    for (int i = 0; i < 8; ++i) scope.spawn(work(pool.run(meet)));
    PoolSizeOptions more;
    more.fixed = 8;
    pool.resize(more);
    const auto nothing = [] {};
    EXPECT_TRUE(co_await pool.run(nothing));
    EXPECT_EQ(pool.report().size, 8U);
    EXPECT_EQ(pool.report().last_change.from, 1U);
    EXPECT_EQ(pool.report().last_change.reason, SizeReason::set);
    more.fixed = 2;
    pool.resize(more);
    while (pool.report().threads > 2) co_await yield();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(co_await pool.run(nothing));
    EXPECT_EQ(pool.report().threads, 2U);
  };
  static_cast<void>(run(with_scope(body)));
}

TEST_F(BlockingPoolThreads, AnAutomaticSizeGrowsWhileThreadsAreBlocked) {
  constexpr int count = 100;
  BlockingPool pool(platform_, automatic(2 * count));
  std::latch all_there(count);
  const auto meet = [&] { all_there.arrive_and_wait(); };  // hangs unless all hundred run together
  const auto body = [&]() -> Task<> {
    std::vector<Task<Result<>>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(pool.run(meet));
    EXPECT_TRUE(co_await all(std::move(calls)));
  };
  run(body());
  const PoolReport report = pool.report();
  EXPECT_GE(report.threads, static_cast<std::size_t>(count));
  EXPECT_EQ(report.evidence, SizeEvidence::thread_states);
  EXPECT_GT(report.blocked_share, 0.0);
}

TEST_F(BlockingPoolThreads, AShareGrowsWithTheSize) {
  constexpr int count = 20;
  BlockingPool pool(platform_, automatic(4 * count));
  const PoolLane slow = pool.add_lane({.name = "slow", .share_max = 0.5});
  std::latch all_there(count);
  const auto meet = [&] { all_there.arrive_and_wait(); };
  const auto body = [&]() -> Task<> {
    std::vector<Task<Result<>>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(slow.run(meet));
    EXPECT_TRUE(co_await all(std::move(calls)));
  };
  run(body());
}

/// Runs twice as many busy threads as there are CPUs, so that work of a pool waits for CPUs more
/// than it runs.
class ForeignLoad {
 public:
  explicit ForeignLoad(std::size_t cpus) {
    for (std::size_t i = 0; i < 2 * cpus; ++i) {
      threads_.emplace_back([this] {
        while (busy_) {
        }
      });
    }
  }
  ForeignLoad(const ForeignLoad&) = delete;
  ForeignLoad& operator=(const ForeignLoad&) = delete;
  ~ForeignLoad() {
    busy_ = false;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> busy_ = true;
  std::vector<std::thread> threads_;
};

// The test uses the median of some rounds, because a thread of the pool may really sleep for a
// moment, as in a page fault. A pool without protection doubles at each sample.
// pool_threads_test.cpp tests this step by step.
TEST_F(BlockingPoolThreads, ForeignLoadDoesNotMakeItGrow) {
  const ForeignLoad load(platform_.topology().cpus_allowed);
  const auto compute = [] {
    const auto self = os::ThreadProbe::of_this_thread();
    const Duration until = self.cpu_time() + 2ms;
    while (self.cpu_time() < until) {
    }
  };
  std::vector<std::size_t> grown;
  for (int round = 0; round < 5; ++round) {
    BlockingPool pool(platform_);
    const std::size_t at_first = pool.report().size;
    std::size_t largest = 0;
    // Read the report here. A thread that read it in its work could block while another thread,
    // which has lost its CPU, holds the lock.
    const auto compute_and_look = [&]() -> Task<Result<>> {
      auto done = co_await pool.run(compute);
      largest = std::max(largest, pool.report().size);
      co_return done;
    };
    const auto body = [&]() -> Task<> {
      std::vector<Task<Result<>>> calls;
      for (int i = 0; i < 10; ++i) calls.push_back(compute_and_look());
      EXPECT_TRUE(co_await all(std::move(calls)));
    };
    run(body());
    grown.push_back(largest - at_first);
  }
  std::ranges::nth_element(grown, grown.begin() + 2);
  EXPECT_EQ(grown[2], 0U);
}

TEST_F(BlockingPoolThreads, GrowsForSleepingWorkUnderForeignLoad) {
  const ForeignLoad load(platform_.topology().cpus_allowed);
  constexpr int count = 8;
  BlockingPool pool(platform_, automatic(2 * count));
  std::latch all_there(count);
  const auto meet = [&] { all_there.arrive_and_wait(); };  // hangs unless all run together
  const auto body = [&]() -> Task<> {
    std::vector<Task<Result<>>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(pool.run(meet));
    EXPECT_TRUE(co_await all(std::move(calls)));
  };
  run(body());
}

TEST_F(BlockingPoolThreads, TheDestructorAwaitsCallsInFlight) {
  // With the sanitizers: threads are woken and started while the pool is destroyed.
  const auto nothing = [] {};
  for (int round = 0; round < 100; ++round) {
    const auto body = [&](Scope& scope) -> Task<> {
      BlockingPool pool(platform_, round % 2 == 0 ? automatic(9) : fixed(9));
      const auto any = [](Task<Result<>> work) -> Task<> {
        std::ignore = co_await std::move(work);
      };
      for (int i = 0; i < 20; ++i) scope.spawn(any(pool.run(nothing)));
      for (int i = 0; i < round; ++i) co_await yield();
    };
    static_cast<void>(run(with_scope(body)));
  }
}

TEST_F(BlockingPoolThreads, IdleThreadsEnd) {
  BlockingPoolOptions options = automatic(100);
  options.size.idle_timeout = 1ms;
  options.size.sample_period = 1ms;
  BlockingPool pool(platform_, options);
  const auto body = [&]() -> Task<> {
    for (int round = 0; round < 20; ++round) {
      std::latch all_there(10);
      const auto meet = [&] { all_there.arrive_and_wait(); };
      std::vector<Task<Result<>>> calls;
      for (int i = 0; i < 10; ++i) calls.push_back(pool.run(meet));
      EXPECT_TRUE(co_await all(std::move(calls)));
      while (round % 4 == 0 && pool.report().threads > 1) co_await yield();
    }
  };
  run(body());
}

// For the thread sanitizer: each core calls and cancels, and gets its results on its own core.
TEST(BlockingPoolOnCores, AllCoresShareOnePool) {
  constexpr unsigned cores = 3;
  OsPlatform platform;
  for (const std::size_t size : {0U, 1U, 4U}) {
    BlockingPool pool(platform, fixed(size));
    const PoolLane slow = pool.add_lane({.name = "slow", .share_max = 0.5});
    std::atomic<int> called = 0;
    std::atomic<int> cancelled = 0;
    const auto work = [&called](std::string text, std::unique_ptr<int> number) {
      ++called;
      return text + std::to_string(*number);
    };
    const auto body = [&](Scope& scope) -> Task<Result<>> {
      const Loop* const owner_loop = &scope.loop();
      for (int i = 0; i < 300; ++i) {
        const std::string text(static_cast<std::size_t>(i % 40), 'x');
        const auto answer = co_await pool.run(work, text, std::make_unique<int>(i));
        if (Loop::current() != owner_loop) co_return fail(Errc::conflict);
        if (!answer || *answer != text + std::to_string(i)) co_return fail(Errc::bad_input);
        auto call = slow.run(work, text, std::make_unique<int>(i));
        const auto hurried = co_await timeout(Duration(i * 100), std::move(call));
        if (Loop::current() != owner_loop) co_return fail(Errc::conflict);
        if (!hurried) ++cancelled;
        if (hurried && *hurried != *answer) co_return fail(Errc::bad_input);
      }
      co_return {};
    };
    RuntimeOptions options;
    options.announce = false;
    options.cores = cores;
    options.pin = false;
    Runtime runtime(platform, options);
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
    EXPECT_EQ(called + cancelled, 2 * 300 * static_cast<int>(cores));
    const PoolReport report = pool.report();
    EXPECT_EQ(report.running + report.queued, 0U);
    EXPECT_EQ(report.lanes.at(0).finished, 300U * cores);
    EXPECT_EQ(report.lanes.at(1).finished + report.lanes.at(1).cancelled, 300U * cores);
  }
}

}  // namespace
}  // namespace weir::blocking_pool_threads_test
