// Runs work that blocks or computes for long on threads outside the loops.
#pragma once

#include <cstddef>
#include <utility>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/pool/detail/blocking_call.hpp"
#include "weir/runtime/pool/detail/pool_threads.hpp"
#include "weir/runtime/pool/pool_options.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

/// A PoolLane is one kind of work in a BlockingPool, with its own limits; see PoolLaneOptions.
/// Copies refer to the same lane.
/// Threads: any.
/// Lifetime: must not be used after its pool is destroyed.
class PoolLane {
 public:
  /// Runs a function in this lane; see BlockingPool::run().
  /// Returns: the value of BlockingPool::run().
  /// Errors: those of BlockingPool::run(), with the capacity of this lane.
  /// Cancel: the effect is that on BlockingPool::run().
  template <class Fn, class... Args>
  Task<PoolResult<Fn, Args...>> run(Fn fn, Args... args) const {
    return detail::run_blocking<Fn, Args...>(*threads_, index_, std::move(fn), std::move(args)...);
  }

 private:
  friend class BlockingPool;
  PoolLane(PoolThreads& threads, std::size_t index) noexcept : threads_(&threads), index_(index) {}
  PoolThreads* threads_;
  std::size_t index_;
};

/// A BlockingPool runs on its threads what a loop must not run: blocking calls and long
/// computations. Any number of cores share one pool. One thread starts with the pool and controls
/// it: it starts the others when they are needed. The pool chooses their number automatically
/// unless PoolSizeOptions::fixed is set.
///
/// A simulated platform calls a function between two turns. The call takes no virtual time; in a
/// sim::World it takes a random time of at most sim::JitterOptions::step_max.
///
/// Threads: any.
/// Lifetime: the platform outlives the pool, and the pool outlives every run(). The destructor
/// closes the pool and waits for running functions.
class BlockingPool {
 public:
  explicit BlockingPool(loop::Platform& platform, const BlockingPoolOptions& options = {})
      : threads_(platform, options), default_lane_(threads_, 0) {}

  /// `co_await pool.run(fn, args...)` calls `fn(args...)` on a thread of the pool, where it may
  /// block. The caller is resumed on its own loop. `fn` and `args` are moved in (lvalues are
  /// copied) and destroyed on the caller's loop at the end. Arguments that are pointers,
  /// references or views do not compile unless they are wrapped by borrow(). The compiler cannot
  /// check the captures of a lambda: capture by value.
  ///
  /// If `fn` can be called with a std::stop_token before its arguments, it gets one. Callbacks of
  /// the token are called on the thread that cancels.
  ///
  /// Returns: a Result of what `fn` returns; an exception that `fn` throws is rethrown here.
  /// Errors: Errc::limit_reached if the queue is full (see OverflowPolicy). Errc::closed after
  /// close(). EAGAIN, or another error of the kernel, if the pool has no thread and the kernel
  /// refuses to start one.
  /// Cancel: queued work leaves the queue immediately with Errc::cancelled. Running work gets a
  /// stop request through its token, and run() waits for the end of `fn` and returns its result.
  template <class Fn, class... Args>
  Task<PoolResult<Fn, Args...>> run(Fn fn, Args... args) {
    return default_lane_.run(std::move(fn), std::move(args)...);
  }

  /// Returns the lane that run() uses.
  const PoolLane& default_lane() const noexcept { return default_lane_; }
  /// Adds a lane with its own limits on the same threads. Lanes live as long as the pool.
  PoolLane add_lane(const PoolLaneOptions& options) {
    return {threads_, threads_.add_lane(options)};
  }

  /// Takes effect immediately; excess threads finish their current work first.
  void resize(const PoolSizeOptions& options) { threads_.resize(options); }
  /// Closes the pool: run() fails with Errc::closed from now on. Queued work fails with
  /// Errc::cancelled, and running work gets a stop request. The call returns without waiting.
  void close() { threads_.close(); }
  PoolReport report() const { return threads_.report(); }

 private:
  PoolThreads threads_;
  PoolLane default_lane_;
};

}  // namespace weir
