// Test fixture of a pool whose threads take steps on the test's command, all in one real thread.
// It may use weir/testing because only tests include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A ManualThread takes a step when the test calls step(). The work of a step may call step() of
/// other threads: to them this thread is blocked or computing until the work returns.
class ManualThread final : public loop::PlatformThread {
 public:
  ManualThread(std::vector<ManualThread*>& all, loop::ThreadWork& work) : all_(all), work_(work) {
    all_.push_back(this);
  }
  ManualThread(const ManualThread&) = delete;
  ManualThread& operator=(const ManualThread&) = delete;
  ~ManualThread() override {
    if (before_end) before_end();
    std::erase(all_, this);
  }

  Result<> start() override {
    EXPECT_FALSE(started) << "a thread is started once";
    if (refuses) return fail(system_error(EAGAIN));
    started = true;
    return {};
  }
  void wake() noexcept override {
    called = true;
    if (on_wake) on_wake();
  }
  Duration cpu_time() noexcept override { return used += clock_read_cost; }
  os::ThreadState state() noexcept override { return now; }

  /// Returns true if the thread would take a step at time `at`.
  bool due(Instant at) const noexcept {
    return started && !stepping && !ended && (called || until <= at);
  }
  void step() {
    called = false;
    stepping = true;
    const auto next = work_.step();
    stepping = false;
    ended = !next;
    until = next.value_or(never);
  }

  bool refuses = false;
  bool started = false;
  bool stepping = false;
  bool called = false;
  bool ended = false;
  Instant until = Instant::min();
  Duration used{};
  Duration clock_read_cost{};  ///< CPU time that each reading of the clock uses
  os::ThreadState now = os::ThreadState::blocked;
  std::function<void()> on_wake;     ///< called in wake(), as if another thread ran then
  std::function<void()> before_end;  ///< called in the destructor, which waits for the thread

 private:
  std::vector<ManualThread*>& all_;
  loop::ThreadWork& work_;
};

/// A ManualPlatform is a platform in memory that creates ManualThreads.
class ManualPlatform final : public MemoryPlatform {
 public:
  using MemoryPlatform::MemoryPlatform;

  /// Returns the time; each call advances it by `clock_read_time`.
  Instant now() noexcept override {
    if (on_now) on_now();
    passed_ += clock_read_time;
    return MemoryPlatform::now() + passed_;
  }
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions&,
                                                    loop::ThreadWork& work) override {
    if (failures > 0 && failures-- == 1) throw std::bad_alloc();
    auto made = std::make_unique<ManualThread>(threads, work);
    made->refuses = refuses;
    return made;
  }

  std::vector<ManualThread*> threads;  ///< existing threads in the order of creation
  int failures = 0;                    ///< counts down; make_thread() throws at 1
  bool refuses = false;                ///< true: the threads that it makes cannot be started
  Duration clock_read_time{};
  std::function<void()> on_now;  ///< called in now()

 private:
  Duration passed_{};
};

/// Fixture with a loop and a manually driven pool on `cpus` CPUs.
class ManualPoolTest : public testing::Test {
 protected:
  static constexpr std::size_t cpus = 2;

  void make(const PoolSizeOptions& size) {
    BlockingPoolOptions options;
    options.size = size;
    pool_ = std::make_unique<BlockingPool>(platform_, options);
    start_threads();
  }
  /// Lets the controller start the threads that are needed.
  void start_threads() {
    if (controller().due(platform_.now())) controller().step();
  }
  /// Returns the controller, which is the first thread.
  ManualThread& controller() { return *platform_.threads.at(0); }
  /// Returns a worker by its index in the order of creation.
  ManualThread& worker(std::size_t index) { return *platform_.threads.at(index + 1); }

  /// Runs `function` `count` times on a pool or lane and calls `queued()` when all calls are
  /// queued. All threads then take steps until all calls have ended.
  template <class Lane, class Function>
  void run_jobs(
      Lane& lane, std::size_t count, Function function,
      const std::function<void()>& queued = [] {}) {
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < count; ++i) scope.spawn(lane.run(function));
      start_threads();
      queued();
      co_await finish(scope);
    };
    EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
  }
  Task<> finish(Scope& scope) {
    // Results that return to the loop become visible some turns later.
    for (int idle = 0; scope.running() != 0 && idle < 100; ++idle) {
      if (take_steps()) idle = 0;
      co_await yield();
    }
    EXPECT_EQ(scope.running(), 0U);
  }
  /// Lets every thread that is due take a step, oldest first.
  /// Returns: true if at least one thread was due.
  bool take_steps() {
    bool some = false;
    for (std::size_t i = 0; i < platform_.threads.size(); ++i) {
      ManualThread& thread = *platform_.threads[i];
      if (!thread.due(platform_.now())) continue;
      thread.step();
      some = true;
    }
    return some;
  }
  void pass(Duration length) { platform_.clock().move_to(after(platform_.clock().now(), length)); }

  ManualPlatform platform_{{.cores = cpus}};
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  std::unique_ptr<BlockingPool> pool_;
};

}  // namespace weir
