// What a runtime tells about itself while it runs: figures of each core, slow turns, its pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"
#include "weir/loop/figures.hpp"
#include "weir/loop/slow_turns.hpp"

namespace weir {

class Loop;

/// One core, or all of them together. Counts are of all that there has been since the runtime
/// began; what happened of late is the difference of two reports. They are the loop's own counters,
/// each read by itself while the core goes on: two of them may be a moment apart.
struct CoreReport {
  unsigned core = 0;
  int cpu = -1;         ///< to which its thread is pinned; -1: none
  std::string backend;  ///< "uring", "epoll" ...
  Duration up{};        ///< since its loop was made; of all cores together, the sum
  /// That its thread has had, in turns and in the kernel on their behalf; 0 in a simulation.
  Duration cpu_time{};
  Duration run_time{};   ///< for which coroutines and other things ran on it, by the clock
  Duration wait_time{};  ///< in the backend: submitting, asking the kernel, and sleeping

  std::uint64_t turns = 0;
  std::uint64_t slow_turns = 0;   ///< that ran for longer than Loop::slow_turn
  std::uint64_t runs = 0;         ///< of coroutines and other things that were ready
  std::uint64_t received = 0;     ///< of these, what came from other threads, through the inbox
  std::uint64_t inbox_depth = 0;  ///< that wait there: at this moment
  std::uint64_t inbox_most = 0;   ///< that the loop has found waiting there at once
  std::uint64_t system_calls = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t accepts = 0;              ///< connections that the kernel has given to this core
  std::uint64_t connections = 0;          ///< streams that are open: at this moment
  std::uint64_t handed_over = 0;          ///< connections given to other cores; see Balance
  std::uint64_t taken_over = 0;           ///< connections that other cores have accepted
  std::uint64_t accept_pauses = 0;        ///< because descriptors or memory had run out
  std::uint64_t connections_dropped = 0;  ///< accepted, and closed because memory had run out
  std::uint64_t exceptions_dropped = 0;   ///< of tasks whose outcome nobody wanted any more
  std::uint64_t values_missed = 0;        ///< by subscribers of broadcasts that were too slow
  std::uint64_t frames_in_use = 0;        ///< of coroutines: at this moment
  std::uint64_t buffers_in_use = 0;       ///< also those that io_uring may fill: at this moment
  std::uint64_t blocks_in_use = 0;        ///< these, and what else is of this core: at this moment
  std::uint64_t cached_bytes = 0;         ///< in free blocks of this core's memory: at this moment
  /// What others count on this core: servers (of whose refusals each reason is one), applications.
  std::vector<Figure> figures;

  /// The part of the time in which the core worked, from 0 to 1: by its CPU time, or in a
  /// simulation by that for which something ran. Of late: by the difference of two reports.
  double busy() const noexcept;
};

/// See Runtime::report().
struct RuntimeReport {
  bool running = false;         ///< else it is of the last run, or there has been none
  Duration up{};                ///< since the loops were made, to the end
  std::size_t connections = 0;  ///< that servers on these cores have open
  std::vector<CoreReport> cores;
  std::vector<SlowPlace> slow_places;  ///< most turns first
  std::optional<PoolReport> pool;      ///< of the SharedPool, if anybody has used it

  CoreReport total() const;
  /// For people: a table of several lines, each ended by a newline.
  std::string to_text() const;
  friend std::ostream& operator<<(std::ostream& out, const RuntimeReport& report);
};

/// What a loop tells; any thread. `cpu` and `up` are left to the caller.
CoreReport report_on(Loop& loop);

}  // namespace weir
