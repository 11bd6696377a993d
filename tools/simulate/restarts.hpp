// Hot restarts: processes of a service take over from each other, on one machine of a World, while
// clients come and go; some of the processes die.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

/// Which process dies, and when.
struct RestartDeath {
  std::size_t process = 0;  ///< in the order in which they begin
  /// At which step of its handovers, see WorldHost::kill_at_handover_step();
  std::uint64_t step = 0;
  std::optional<Duration> moment = {};  ///< or so long after the beginning
};

struct RestartRun {
  std::size_t processes = 3;  ///< each of which takes over from the one before
  std::optional<RestartDeath> death = {};
  /// What must be found wrong: an older process that does not wait for the newer one, but ends by a
  /// SIGTERM a second before that one begins, without having passed its sockets on.
  bool careless = false;
};

struct RestartOutcome {
  Outcome outcome;
  std::vector<std::uint64_t> steps = {};  ///< of each process
  bool outage = false;                    ///< nobody had the sockets of the one that died
  std::size_t served_by_newer = 0;        ///< answers that did not come from the first process
};

/// What must hold: whoever connects, at whatever moment, is answered, and everything that is
/// answered is right. Excepted are those whom a process had accepted that died, and, where its
/// sockets were its own, those who waited at them, or came before another one listened.
RestartOutcome run_restarts(const WorldOptions& options, const RestartRun& run);

/// As scenarios: all goes well but for slow threads and networks; and one process dies.
Outcome with_restarts(const WorldOptions& options);
Outcome with_deaths(const WorldOptions& options);

}  // namespace weir::simulate
