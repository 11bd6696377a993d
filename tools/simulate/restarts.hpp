// Simulates hot restarts: processes of a service take over from each other on one machine while
// clients connect, and some processes die.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

/// Says which process dies, and when.
struct ProcessKill {
  std::size_t process = 0;  ///< index in the order in which the processes begin
  /// Step of its handovers at which it dies; see sim::Host::kill_at_handover_step().
  std::uint64_t step = 0;
  std::optional<Duration> moment = {};  ///< time after the beginning, instead of a step
};

struct RestartRun {
  std::size_t processes = 3;  ///< number of processes; each takes over from the one before
  std::optional<ProcessKill> kill = {};
  /// True: the test must find a violation. The older process does not wait for the newer one. It
  /// gets a SIGTERM one second before the newer one begins, and does not pass its sockets on.
  bool without_handover = false;
};

struct RestartOutcome {
  Outcome outcome;
  std::vector<std::uint64_t> steps = {};  ///< handover steps of each process
  bool outage = false;                    ///< true: no process had the sockets of the dead one
  std::size_t served_by_newer = 0;        ///< responses that did not come from the first process
};

/// Runs the processes and their clients. The test requires that every client that connects is
/// answered, at any time, and that every response is correct. Only a process that drains may close
/// before it has answered all requests of a connection. The test excuses clients whose connection
/// was accepted by a process that died. If no other process had its sockets, it also excuses
/// clients that waited at them, or that connected before another process listened.
RestartOutcome run_restarts(const sim::WorldOptions& options, const RestartRun& run);

/// Runs as scenarios: with_restarts() has only slow threads and networks; with_kills() also kills
/// one process.
Outcome with_restarts(const sim::WorldOptions& options);
Outcome with_kills(const sim::WorldOptions& options);

}  // namespace weir::simulate
