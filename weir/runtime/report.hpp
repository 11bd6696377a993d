// Reports of a running runtime: metrics of each core, slow turns, and the state of its pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/detail/stall_detector.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

class Loop;

/// A CoreReport describes one core, or the sum of all cores. Counts cover the time since the
/// runtime began; the difference of two reports gives the recent activity. The values are the
/// counters of the loop. Each is read separately while the core runs, so two of them may differ
/// by a moment.
struct CoreReport {
  unsigned core = 0;
  int cpu = -1;         ///< CPU that its thread is pinned to; -1: none
  std::string backend;  ///< "uring", "epoll" ...
  Duration up{};        ///< time since its loop was created; the sum in a total
  /// CPU time of its thread, in turns and in the kernel on their behalf; 0 in a simulation.
  Duration cpu_time{};
  Duration run_time{};   ///< wall-clock time in which coroutines and other work ran
  Duration wait_time{};  ///< time in the backend: submitting, polling and sleeping

  std::uint64_t turns = 0;
  std::uint64_t slow_turns = 0;       ///< turns that ran for longer than Loop::slow_turn
  std::uint64_t runs = 0;             ///< coroutines and other work items that ran
  std::uint64_t received = 0;         ///< runs that other threads requested through the inbox
  std::uint64_t inbox_depth = 0;      ///< items in the inbox now
  std::uint64_t inbox_depth_max = 0;  ///< most items that the loop has found in the inbox
  std::uint64_t system_calls = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t accepts = 0;              ///< connections that the kernel gave to this core
  std::uint64_t connections = 0;          ///< streams that are open now
  std::uint64_t handed_over = 0;          ///< connections given to other cores to balance them
  std::uint64_t taken_over = 0;           ///< connections that other cores accepted
  std::uint64_t accept_pauses = 0;        ///< pauses because descriptors or memory ran out
  std::uint64_t connections_dropped = 0;  ///< accepted, then closed because memory ran out
  std::uint64_t exceptions_dropped = 0;   ///< exceptions whose task's outcome was no longer needed
  std::uint64_t values_missed = 0;        ///< values missed by slow subscribers of broadcasts
  std::uint64_t frames_in_use = 0;        ///< coroutine frames now
  std::uint64_t buffers_in_use = 0;       ///< buffers now, with those that io_uring may fill
  std::uint64_t blocks_in_use = 0;        ///< frames, buffers and other blocks of this core now
  std::uint64_t cached_bytes = 0;         ///< bytes in free blocks of this core now
  /// Metrics of servers (one for each reason of a rejection) and of applications on this core.
  std::vector<Metric> metrics;

  /// Returns the fraction of time in which the core worked, from 0 to 1. It uses CPU time, or
  /// run_time in a simulation. Compute recent load from the difference of two reports.
  double busy() const noexcept;
};

/// The result of Runtime::report().
struct RuntimeReport {
  bool running = false;         ///< true during a run; false after it or before any
  Duration up{};                ///< time since the loops were created, until the end
  std::size_t connections = 0;  ///< open connections of servers on these cores
  std::vector<CoreReport> cores;
  std::vector<loop::StallSummary> stalls;  ///< most turns first
  std::optional<PoolReport> pool;          ///< report of the SharedPool, if it was used

  CoreReport total() const;
  /// Returns the report as a text table for people. Each line ends with a newline.
  std::string to_text() const;
  friend std::ostream& operator<<(std::ostream& out, const RuntimeReport& report);
};

/// Returns the counters of a loop; the caller sets `cpu` and `up`.
/// Threads: any.
CoreReport report_on(Loop& loop);

}  // namespace weir
