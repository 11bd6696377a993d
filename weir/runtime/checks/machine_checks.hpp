// Checks of a machine: they compare its facts with the demands of a service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/runtime/checks/finding.hpp"
#include "weir/runtime/checks/machine_facts.hpp"

namespace weir::checks {

/// Demands are what a service asks of its machine. A value that is nullopt is not asked for, and is
/// not checked.
struct Demands {
  /// Connections of clients at the same time; nullopt: as many as the descriptors allow.
  std::optional<std::size_t> connections_max = {};
  std::optional<unsigned> cores = {};  ///< loops of the process
  /// Descriptors of the process beside those of connections; nullopt: computed from the cores.
  std::optional<std::size_t> descriptors_own = {};
  std::optional<std::uint64_t> memory_bytes = {};         ///< such as http::MemoryBound::total()
  std::optional<std::int64_t> backlog = {};               ///< ListenOptions::backlog
  std::optional<std::int64_t> outgoing_connections = {};  ///< to one address of a peer
  std::vector<Endpoint> endpoints = {};                   ///< addresses that the service listens on
  std::optional<BackendChoice> backend = {};
  std::optional<int> real_time_priority = {};  ///< RealTime::priority
  bool lock_memory = false;                    ///< RealTime::lock_memory
  bool loops = false;                          ///< true if loops run: they read clocks, use threads
  bool writes_files = false;                   ///< true if it writes files, such as a log
};

/// Returns the demands of a server with default options: it listens, uses the best backend, and
/// runs a loop for each core.
Demands default_demands();

/// Returns the number of descriptors that a server with this number of loops needs beside those of
/// its connections.
std::size_t server_descriptors(std::size_t loops) noexcept;

/// Descriptors that a server without a limit of connections leaves to the rest of the program.
inline constexpr std::size_t descriptors_reserved = 64;

/// Returns the demands that the machine does not meet, the most severe first. Notes are information
/// about the machine that no demand concerns.
std::vector<Finding> check_machine(const MachineFacts& facts, const Demands& demands);

/// Returns the number of checks that check_machine() makes.
std::size_t machine_check_count() noexcept;

}  // namespace weir::checks
