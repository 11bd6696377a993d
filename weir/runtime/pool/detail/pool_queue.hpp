// The queue of a pool: work in lanes, and the choice of the job that runs next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/runtime/pool/pool_options.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

/// A PoolJob is one job of a PoolQueue; it lives in the frame of its waiter.
/// Threads: those of its queue.
class PoolJob : public detail::ListNode {
 protected:
  PoolJob() noexcept = default;
  ~PoolJob() = default;
  Instant queued_at() const noexcept { return queued_at_; }

 private:
  friend class PoolQueue;
  std::size_t lane_ = 0;
  std::uint64_t sequence_ = 0;  // order of arrival over all lanes
  Instant queued_at_{};
  Instant began_at_{};
};

/// A PoolQueue uses no threads and no clocks: callers pass the time and the number of threads
/// that may have work (`size`). Reserved threads of the lanes are added to that size, and the
/// first jobs of a lane use its reserved threads.
/// Threads: one at a time.
class PoolQueue {
 public:
  /// Adds a lane and returns its index; lanes are never removed.
  std::size_t add_lane(const PoolLaneOptions& options);

  /// Appends a job to a lane. A lane is full if it holds its capacity in addition to the jobs
  /// that `size` threads are about to take from it.
  /// Errors: Errc::limit_reached if the lane is full and its policy is to reject.
  Result<> push(PoolJob& job, std::size_t lane, std::size_t size, Instant now);
  /// Takes the next job to run while `size` threads may have work. It is the oldest job of the
  /// highest priority among the lanes that may use one more thread. The job runs until
  /// finished().
  /// Returns: nullptr if there is no such job.
  PoolJob* take(std::size_t size, Instant now);
  /// Jobs that are shorter were hardly blocked: sleeping and waking up takes longer.
  static constexpr Duration brief = std::chrono::microseconds(20);
  /// Ends a running job. `cpu_time` is the CPU time of its call, if that was measured.
  void finished(PoolJob& job, Instant now, std::optional<Duration> cpu_time);
  /// Ends a taken job that will not be called, instead of finished().
  void discard(PoolJob& job);
  /// Removes a queued job.
  void cancel(PoolJob& job);
  /// Removes and returns any queued job; nullptr if there is none.
  PoolJob* cancel_any();

  /// Returns true if take() would return a job.
  bool has_runnable(std::size_t size) const noexcept { return next_lane(size) != nullptr; }
  /// Returns true if a queued job is not held back by a limit of its lane. Such a job needs only
  /// a free thread or a larger size.
  bool has_backlog() const noexcept;
  /// Returns the number of reserved threads that have work.
  std::size_t reserved_threads() const noexcept;
  std::size_t reserved_threads_max() const noexcept { return reserved_threads_max_; }
  std::size_t queued() const noexcept { return queued_; }
  std::size_t running() const noexcept { return running_; }
  /// Returns the number of running jobs that do not use a reserved thread.
  std::size_t running_shared() const noexcept { return running_shared_; }
  std::uint64_t finished_count() const noexcept { return finished_; }
  void report(PoolReport& report) const;

 private:
  struct Lane {
    explicit Lane(const PoolLaneOptions& chosen) : options(chosen) { report.name = chosen.name; }
    /// Returns how many more of its jobs may run.
    std::size_t free(std::size_t size) const noexcept;
    std::size_t free_reserved() const noexcept {
      return options.reserved_threads - std::min(options.reserved_threads, report.running);
    }

    PoolLaneOptions options;
    detail::List<PoolJob> jobs;
    PoolLaneReport report;  // also holds the present counts
  };
  const Lane* next_lane(std::size_t size) const noexcept;
  void release_thread(Lane& lane) noexcept;

  std::deque<Lane> lanes_;  // a deque, because a List cannot be moved
  std::uint64_t next_sequence_ = 0;
  std::size_t queued_ = 0;
  std::size_t running_ = 0;
  std::size_t running_shared_ = 0;  // running jobs that do not use a reserved thread
  std::size_t reserved_threads_max_ = 0;
  std::uint64_t finished_ = 0;
};

}  // namespace weir
