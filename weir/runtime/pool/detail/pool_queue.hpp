// The queue of a pool: work in lanes, and which of it may be run next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/runtime/pool_options.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"

namespace weir {

/// A piece of work in a PoolQueue; it lives in whatever waits for it. Threads: those of its queue.
class PoolJob : public ListNode {
 protected:
  PoolJob() noexcept = default;
  ~PoolJob() = default;

 private:
  friend class PoolQueue;
  std::size_t lane_ = 0;
  std::uint64_t number_ = 0;  // in the order of coming, over all lanes
  Instant queued_at_{};
  Instant began_at_{};
};

/// Knows neither threads nor clocks: it is told the time, and how many threads may have work. To
/// that size those come that lanes have beside it; of a lane's jobs the first run on them.
/// Threads: one at a time.
class PoolQueue {
 public:
  /// Returns its index; they are never removed.
  std::size_t add_lane(const PoolLaneOptions& options);

  /// Full is a lane that has its most beyond what `size` threads are about to take from it.
  /// Errors: Errc::limit_reached when it is full and rejects.
  Result<> push(PoolJob& job, std::size_t lane, std::size_t size, Instant now);
  /// The next job to run while `size` threads may have work: the oldest one of the highest priority
  /// among the lanes that may have one more thread; nullptr when there is none. It runs until
  /// finished().
  PoolJob* take(std::size_t size, Instant now);
  /// Work that took less can hardly have been blocked: sleeping and waking up takes longer.
  static constexpr Duration brief = std::chrono::microseconds(20);
  /// `cpu_time` is what its call has used, where that was looked at.
  void finished(PoolJob& job, Instant now, std::optional<Duration> cpu_time);
  /// Instead of finished(), for one that was taken and will not be called.
  void give_up(PoolJob& job);
  /// Gives up a job that is queued.
  void cancel(PoolJob& job);
  /// Any queued job, given up; nullptr without one.
  PoolJob* cancel_any();

  /// Whether take() would give one.
  bool takeable(std::size_t size) const noexcept { return next_lane(size) != nullptr; }
  /// Whether something is queued that no limit of its own lane keeps from running: it takes a
  /// thread that is free, or a larger size.
  bool held_back() const noexcept;
  /// Threads beyond the size for which there is work.
  std::size_t beside() const noexcept;
  std::size_t beside_max() const noexcept { return beside_max_; }
  std::size_t queued() const noexcept { return queued_; }
  std::size_t running() const noexcept { return running_; }
  std::uint64_t finished_count() const noexcept { return finished_; }
  void report(PoolReport& report) const;

 private:
  struct Lane {
    explicit Lane(const PoolLaneOptions& chosen) : options(chosen) { report.name = chosen.name; }
    /// How many more of its jobs may run.
    std::size_t free(std::size_t size) const noexcept;
    std::size_t free_beside() const noexcept {
      return options.beside - std::min(options.beside, report.running);
    }

    PoolLaneOptions options;
    List<PoolJob> jobs;
    PoolLaneReport report;  // and the present counts
  };
  const Lane* next_lane(std::size_t size) const noexcept;
  void leave(Lane& lane) noexcept;

  std::deque<Lane> lanes_;  // never moved: a List cannot be
  std::uint64_t next_number_ = 0;
  std::size_t queued_ = 0;
  std::size_t running_ = 0;
  std::size_t counted_ = 0;  // of those, the ones that are not beside the size
  std::size_t beside_max_ = 0;
  std::uint64_t finished_ = 0;
};

}  // namespace weir
