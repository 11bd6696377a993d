// Checks of a machine: what it takes from a service. They compare plain facts with plain demands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/runtime/checks/finding.hpp"

namespace weir {

/// MachineFacts are plain values that describe a machine and the limits of a process. A value that
/// is nullopt is unknown, and no check uses it.
struct MachineFacts {
  /// Open descriptors that this process may have (RLIMIT_NOFILE), after the limit was raised.
  std::optional<std::uint64_t> open_files_max = {};
};

/// Demands are what a service asks of its machine. A value that is nullopt is not asked for, and is
/// not checked.
struct Demands {
  std::optional<std::size_t> connections_max = {};  ///< connections of clients at the same time
  unsigned cores = 1;                               ///< loops of the process
  /// Descriptors of the process beside those of connections; nullopt: computed from `cores`.
  std::optional<std::size_t> descriptors_own = {};
};

/// Returns what the machine takes from a service with these demands, the most severe first.
std::vector<Finding> check_machine(const MachineFacts& facts, const Demands& demands);

}  // namespace weir
