// Reports of a pool of threads for blocking work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"

namespace weir {

/// SizeReason is the reason for the present size of a pool.
enum class SizeReason : std::uint8_t {
  started,           ///< the initial size
  set,               ///< the program has set it
  all_blocked,       ///< none of the threads with work ran
  some_blocked,      ///< fewer threads ran than there are CPUs
  too_many_running,  ///< more threads ran than there are CPUs
  no_gain,           ///< the last added threads did not get more work done
  little_work,       ///< threads found nothing to do
  no_threads_left,   ///< the platform could not start another thread
  retry,             ///< starting threads failed earlier and is tried again
};

/// Returns the reason as a text for people.
std::string_view describe(SizeReason reason) noexcept;

/// A change of the automatic size, with its reason.
struct SizeChange {
  Instant at{};
  std::size_t from = 0;  ///< threads before
  std::size_t to = 0;    ///< threads after
  SizeReason reason = SizeReason::started;
};

/// SizeEvidence is the source of data for an automatic size.
enum class SizeEvidence : std::uint8_t {
  none,           ///< no data yet, or the size is fixed
  thread_states,  ///< states under /proc/self/task, and CPU clocks
  cpu_clocks,     ///< CPU clocks alone, without /proc: reactions take longer
};

/// A DurationSum collects a repeated duration: its count, total and maximum.
struct DurationSum {
  std::uint64_t count = 0;
  Duration total{};
  Duration longest{};

  void add(Duration length) noexcept {
    ++count;
    total += length;
    if (length > longest) longest = length;
  }
  /// Returns 0 if nothing was added.
  Duration mean() const noexcept {
    return count == 0 ? Duration(0) : total / static_cast<std::int64_t>(count);
  }
};

/// A snapshot of one lane of a pool: its work now, and counts since the pool was made.
struct PoolLaneReport {
  std::string name;
  std::size_t queued = 0;   ///< work that waits for a thread now
  std::size_t running = 0;  ///< work that runs now
  std::uint64_t finished = 0;
  std::uint64_t rejected = 0;         ///< work rejected because the queue was full
  std::uint64_t waited_for_room = 0;  ///< work whose sender waited because the queue was full
  std::uint64_t cancelled = 0;        ///< work cancelled while it was queued
  DurationSum queue_wait;             ///< time in the queue of work that got a thread
  DurationSum run_time;               ///< run time of finished work
  Duration cpu_time{};                ///< CPU time of finished work
  /// Run time of work whose CPU time was not measured: slow work after a row of jobs of a few
  /// microseconds.
  Duration unmeasured_time{};

  /// Returns the share of measured run time without a CPU, from 0 to 1; 0 before any work has
  /// finished. The work was blocked in that time, or waited for a CPU if more threads needed one
  /// than there are. Compute recent shares from the difference of two reports.
  double blocked_share() const noexcept;
};

/// A snapshot of a BlockingPool; see BlockingPool::report().
struct PoolReport {
  std::size_t size = 0;  ///< threads that may have work, without PoolLaneOptions::reserved_threads
  std::size_t threads = 0;  ///< existing threads
  std::size_t running = 0;  ///< threads with work now
  std::size_t queued = 0;   ///< work without a thread now
  SizeChange last_change;
  SizeEvidence evidence = SizeEvidence::none;
  /// PoolLaneReport::blocked_share() of all lanes together.
  double blocked_share = 0;
  /// Share of the threads with work that sleep in the kernel, from 0 to 1, independent of CPU
  /// contention. Recent samples weigh more. It is set only while the pool samples its threads: an
  /// automatic size that keeps work waiting.
  std::optional<double> blocked_now;
  std::vector<PoolLaneReport> lanes;  ///< in the order of creation
};

}  // namespace weir
