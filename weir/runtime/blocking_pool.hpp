// Work that blocks, or computes for long, on threads beside the loops.
#pragma once

#include <cstddef>
#include <utility>

#include "weir/runtime/blocking_job.hpp"
#include "weir/runtime/pool_crew.hpp"
#include "weir/runtime/pool_options.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// One kind of work in a BlockingPool, with limits of its own; see PoolLaneOptions. It may be
/// copied. Threads: any. Lifetime: used no longer than the pool lives.
class PoolLane {
 public:
  /// As BlockingPool::run(). Cancel: as there.
  template <class Fn, class... Args>
  Task<PoolResult<Fn, Args...>> run(Fn fn, Args... args) const {
    return detail::run_blocking<Fn, Args...>(*crew_, index_, std::move(fn), std::move(args)...);
  }

 private:
  friend class BlockingPool;
  PoolLane(PoolCrew& crew, std::size_t index) noexcept : crew_(&crew), index_(index) {}
  PoolCrew* crew_;
  std::size_t index_;
};

/// Threads for what a loop must not do: calls that block, and long computations. Any number of
/// cores share one; they are started when first needed, and how many there are it finds out by
/// itself unless it is told.
///
/// On a simulated host a function is called between two turns; it takes no time, in a World a drawn
/// one of up to WorldVariation::step_max.
///
/// Threads: any. Lifetime: the host outlives it, and it outlives every run(). When it is destroyed,
/// it is closed first, and the destructor waits for what still runs.
class BlockingPool {
 public:
  explicit BlockingPool(Host& host, const BlockingPoolOptions& options = {})
      : crew_(host, options), own_(crew_, 0) {}

  /// `co_await pool.run(fn, args...)`: calls `fn(args...)` on a thread of the pool, where it may
  /// block, and resumes on the loop that asked. Gives a Result of what it returns; what it throws
  /// is thrown here.
  ///
  /// `fn` and `args` are moved in (copied from what is not moved) and destroyed here, at the end.
  /// Arguments that are pointers, references or views do not compile, but see borrow(). What a
  /// lambda has captured cannot be looked at: capture values.
  ///
  /// If `fn` can be called with a std::stop_token before its arguments, it gets one. Callbacks of
  /// the token are called on the thread that cancels.
  ///
  /// Errors: Errc::limit_reached when the queue is full (see WhenFull); Errc::closed after close();
  /// EAGAIN or what else the kernel says when it refuses even the first thread.
  /// Cancel: what is queued leaves at once with Errc::cancelled. What runs is asked to stop by its
  /// token, and awaited; it then gives whatever `fn` does.
  template <class Fn, class... Args>
  Task<PoolResult<Fn, Args...>> run(Fn fn, Args... args) {
    return own_.run(std::move(fn), std::move(args)...);
  }

  /// What run() uses.
  const PoolLane& own_lane() const noexcept { return own_; }
  /// A kind of work with limits of its own on the same threads. Lanes stay as long as the pool.
  PoolLane add_lane(const PoolLaneOptions& options) { return {crew_, crew_.add_lane(options)}; }

  /// Takes effect at once; threads that are too many by now finish what they run first.
  void resize(const PoolSizeOptions& options) { crew_.resize(options); }
  /// Takes no more work: run() fails with Errc::closed. What is queued fails with Errc::cancelled,
  /// what runs is asked to stop. Returns at once.
  void close() { crew_.close(); }
  PoolReport report() const { return crew_.report(); }

 private:
  PoolCrew crew_;
  PoolLane own_;
};

}  // namespace weir
