// A pool whose threads do what the test says: how it behaves while its work is blocked, step by
// step, in one thread. Included by tests only, so it may use weir/testing.
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

#include "weir/runtime/blocking_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// Takes its steps when the test says so. What its work calls may take steps of other threads: for
/// those it is blocked, or computes, until it returns.
class ThreadByHand final : public HostThread {
 public:
  ThreadByHand(std::vector<ThreadByHand*>& all, ThreadWork& work) : all_(all), work_(work) {
    all_.push_back(this);
  }
  ThreadByHand(const ThreadByHand&) = delete;
  ThreadByHand& operator=(const ThreadByHand&) = delete;
  ~ThreadByHand() override { std::erase(all_, this); }

  Result<> start() override {
    if (refuses) return fail(system_error(EAGAIN));
    started = true;
    return {};
  }
  void wake() noexcept override { called = true; }
  Duration cpu_time() noexcept override { return used += look_cost; }
  os::ThreadState state() noexcept override { return now; }

  /// Whether a thread would take one at this time.
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
  Duration look_cost{};  ///< what it uses from one look at its clock to the next
  os::ThreadState now = os::ThreadState::blocked;

 private:
  std::vector<ThreadByHand*>& all_;
  ThreadWork& work_;
};

/// A host in memory that lends such threads.
class HostByHand final : public MemoryHost {
 public:
  using MemoryHost::MemoryHost;

  /// Each look at it takes `look_time`.
  Instant now() noexcept override {
    passed_ += look_time;
    return MemoryHost::now() + passed_;
  }
  std::unique_ptr<HostThread> make_thread(const HostThreadOptions&, ThreadWork& work) override {
    if (failures > 0 && failures-- == 1) throw std::bad_alloc();
    return std::make_unique<ThreadByHand>(threads, work);
  }

  std::vector<ThreadByHand*> threads;  ///< those that have not been freed, in the order of making
  int failures = 0;                    ///< counted down: making a thread throws when it was 1
  Duration look_time{};

 private:
  Duration passed_{};
};

/// A loop and a pool by hand on `cpus`.
class PoolByHand : public testing::Test {
 protected:
  static constexpr std::size_t cpus = 2;

  void make(const PoolSizeOptions& size) {
    BlockingPoolOptions options;
    options.size = size;
    pool_ = std::make_unique<BlockingPool>(host_, options);
  }
  /// Made first.
  ThreadByHand& keeper() { return *host_.threads.at(0); }
  /// The others, in the order of making.
  ThreadByHand& worker(std::size_t index) { return *host_.threads.at(index + 1); }

  /// Runs `function` so often on the pool or a lane of it: when all is queued `queued()` is called,
  /// and then everybody takes steps until all is done.
  template <class Lane, class Function>
  void run_jobs(
      Lane& lane, std::size_t count, Function function,
      const std::function<void()>& queued = [] {}) {
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < count; ++i) scope.spawn(lane.run(function));
      queued();
      co_await finish(scope);
    };
    EXPECT_TRUE(run(*loop_, with_scope(OnFailure::supervise, body)));
  }
  Task<> finish(Scope& scope) {
    // What has come home is seen some rounds later.
    for (int idle = 0; scope.running() != 0 && idle < 100; ++idle) {
      if (take_steps()) idle = 0;
      co_await yield();
    }
    EXPECT_EQ(scope.running(), 0U);
  }
  /// Everybody who is due takes a step, oldest first. Returns whether somebody was.
  bool take_steps() {
    bool some = false;
    for (std::size_t i = 0; i < host_.threads.size(); ++i) {
      ThreadByHand& thread = *host_.threads[i];
      if (!thread.due(host_.now())) continue;
      thread.step();
      some = true;
    }
    return some;
  }
  void pass(Duration length) { host_.clock().move_to(after(host_.clock().now(), length)); }

  HostByHand host_{{.cores = cpus}};
  std::unique_ptr<Loop> loop_ = Loop::make(host_, {}).value();
  std::unique_ptr<BlockingPool> pool_;
};

}  // namespace weir
