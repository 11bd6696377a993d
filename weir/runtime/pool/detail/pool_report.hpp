// What a pool of threads for blocking work tells about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"

namespace weir {

/// Why a pool has the size that it has.
enum class SizeReason : std::uint8_t {
  started,          ///< its first size
  set,              ///< somebody has chosen it
  all_blocked,      ///< none of the threads with work ran
  some_blocked,     ///< fewer ran than there are CPUs for
  too_many_run,     ///< more ran than there are CPUs for
  no_gain,          ///< the last ones that were added did not get more work done
  little_work,      ///< threads found nothing to do
  no_threads_left,  ///< the host could not start another one
  tries_again,      ///< it could not, some time ago
};

/// For people.
std::string_view describe(SizeReason reason) noexcept;

struct SizeChange {
  Instant at{};
  std::size_t from = 0;
  std::size_t to = 0;
  SizeReason reason = SizeReason::started;
};

/// What an automatic size is decided upon.
enum class SizeEvidence : std::uint8_t {
  none,           ///< nothing yet, or the size is fixed
  thread_states,  ///< states under /proc/self/task, and CPU clocks
  cpu_clocks,     ///< CPU clocks alone: there is no /proc, so reactions take longer
};

/// How long something took, over and over.
struct DurationSum {
  std::uint64_t count = 0;
  Duration total{};
  Duration longest{};

  void add(Duration length) noexcept {
    ++count;
    total += length;
    if (length > longest) longest = length;
  }
  /// 0 without any.
  Duration mean() const noexcept {
    return count == 0 ? Duration(0) : total / static_cast<std::int64_t>(count);
  }
};

struct PoolLaneReport {
  std::string name;
  std::size_t queued = 0;   ///< now
  std::size_t running = 0;  ///< now
  std::uint64_t finished = 0;
  std::uint64_t refused = 0;          ///< because the queue was full
  std::uint64_t waited_for_room = 0;  ///< because the queue was full
  std::uint64_t cancelled = 0;        ///< while queued
  DurationSum queue_wait;             ///< of work that got a thread
  DurationSum run_time;               ///< of work that has finished
  Duration cpu_time{};                ///< the part of all that in which it had a CPU
  /// Another part, of which that was not looked at: work that took long after a row of such that
  /// took microseconds.
  Duration unseen_time{};

  /// The rest, of what was looked at, from 0 to 1: it was blocked, or (where more threads want a
  /// CPU than there are) waited for one. 0 before any has finished. Of late: by the difference of
  /// two reports.
  double blocked_share() const noexcept;
};

struct PoolReport {
  std::size_t size = 0;     ///< threads that may have work at once (PoolLaneOptions::beside apart)
  std::size_t threads = 0;  ///< that exist
  std::size_t running = 0;  ///< that have work now
  std::size_t queued = 0;   ///< work that has no thread yet
  SizeChange last_change;
  SizeEvidence evidence = SizeEvidence::none;
  /// PoolLaneReport::blocked_share() of all lanes together.
  double blocked_share = 0;
  /// Of the threads with work, the part that sleeps in the kernel, whoever else wants the CPUs;
  /// recent looks weigh more. Only while they are looked at: in a pool of automatic size, while its
  /// size keeps work waiting.
  std::optional<double> blocked_now;
  std::vector<PoolLaneReport> lanes;  ///< in the order in which they were made
};

}  // namespace weir
