// What `./dev simulate` runs in a World, once for each seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/simulate/disturbances.hpp"
#include "weir/http/limits.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate {

struct Outcome {
  WorldReport report;
  std::string trace = {};    ///< if it was asked for
  std::uint64_t struck = 0;  ///< faults
  std::size_t answered = 0;  ///< requests
  /// See WorldHost::operations(), of the server.
  std::uint64_t operations = 0;
  std::size_t ahead_most = 0;     ///< see RequestWatch
  std::uint64_t handed_over = 0;  ///< connections, from one core of the server to another
};

struct Scenario {
  std::string_view name;
  std::string_view what;  ///< for people
  Outcome (*run)(const WorldOptions& options);
};

std::span<const Scenario> scenarios();
/// nullptr: there is none of that name.
const Scenario* find_scenario(std::string_view name);
/// Its seed is the one to replay, by a command that names the scenario.
WorldOptions options_for(const Scenario& scenario, std::uint64_t seed, bool trace = false);

/// So small that traffic reaches them: of heads, and of what a closing connection drops.
http::Limits small_limits();

/// A server on two cores, "server", and two hosts of clients, "clients 0" and "clients 1".
struct HttpRun {
  std::size_t connections = 6;
  std::size_t requests_max = 10;
  http::Limits limits = small_limits();
  /// Whether its requests are watched, which is in the way of handlers that do not wait; nullopt:
  /// in half of the runs.
  std::optional<bool> watched = {};
  Disturbance disturb = nothing;  ///< sees to what goes wrong
  /// The server's main; by default Weir's HTTP server, with all of the above.
  WorldMainFunction serve = {};
};
Outcome run_http(const WorldOptions& options, const HttpRun& run);
/// So many blocks a core takes until it serves: without one of them the server ends. Found by
/// trying, for which coroutines need one is the compiler's choice; more than 100 are not tried.
std::size_t allocations_to_begin();
/// What "limits" runs: more clients than may be served, and little patience with them.
HttpRun limits_run();

}  // namespace weir::simulate
