// Declares the scenarios that `./dev simulate` runs in a World, once for each seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/simulate/fault_schedule.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/runtime/options.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate {

struct Outcome {
  sim::WorldReport report;
  std::string trace = {};  ///< trace of the World, if requested
  std::uint64_t injected_faults = 0;
  std::size_t answered = 0;  ///< requests answered
  /// Number of operations of the server; see sim::Host::operations().
  std::uint64_t operations = 0;
  std::size_t read_ahead_max_seen = 0;  ///< most bytes read ahead; see RequestMonitor
  std::uint64_t handed_over = 0;  ///< connections handed from one core of the server to another
};

struct Scenario {
  std::string_view name;
  std::string_view what;  ///< description for the usage text
  Outcome (*run)(const sim::WorldOptions& options);
};

std::span<const Scenario> scenarios();
/// Returns the scenario of that name, or nullptr.
const Scenario* find_scenario(std::string_view name);
/// Returns the options for one seed, with the command that replays it.
sim::WorldOptions options_for(const Scenario& scenario, std::uint64_t seed, bool trace = false);

/// Returns the options of a Runtime that announces nothing.
inline RuntimeOptions quiet(unsigned cores) {
  return {.cores = cores, .announce = false};
}

/// Returns limits on heads, and on the bytes that a closing connection drops, that are small
/// enough for the traffic to reach them.
http::Limits small_limits();

/// A server on two cores, "server", and two hosts of clients, "clients 0" and "clients 1".
struct HttpRun {
  std::size_t connections = 6;
  std::size_t requests_max = 10;
  http::Limits limits = small_limits();
  /// True if requests are watched, which disturbs handlers that do not wait. nullopt: half of the
  /// runs watch them.
  std::optional<bool> watched = {};
  FaultSchedule fault_schedule = no_faults;  ///< faults of the run
  /// The main function of the server. The default is Weir's HTTP server with the options above.
  sim::MainFunction serve = {};
};
Outcome run_http(const sim::WorldOptions& options, const HttpRun& run);
/// Returns how many blocks a core allocates until it serves. The server ends if one of these
/// allocations fails. The number is found by trial, at most 100, because the compiler decides
/// which coroutines allocate.
std::size_t allocations_to_begin();
/// Returns the run of "limits": more clients than the server may serve, and short timeouts.
HttpRun limits_run();

}  // namespace weir::simulate
