// Sends a server more connections, requests, bytes and slow peers than its limits allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

/// Returns limits with short timeouts and few connections; a body may have 64 KiB.
http::Limits short_timeout_limits();

struct OverloadRun {
  http::Limits limits = short_timeout_limits();  ///< limits of the server
  std::size_t excess_bytes =
      0;  ///< bytes that the handler of bodies allocates beyond what it promises
};

/// The result of an overload, in addition to the report.
struct OverloadOutcome {
  Outcome outcome;
  std::size_t attackers_ended = 0;
  std::size_t rejected = 0;     ///< attackers that got 503
  std::size_t timed_out = 0;    ///< attackers that got 408
  std::size_t memory_peak = 0;  ///< largest number of bytes that the server allocated
  std::uint64_t memory_bound = 0;
};

/// Runs a server on two to four cores with clients of three kinds: three regular clients within
/// its limits, newcomers, and attackers for some seconds. The test requires these rules, with
/// short_timeout_limits() even if the server has other limits:
/// - regular clients always get correct responses;
/// - every attacker is answered or closed;
/// - at most connections_max connections are open;
/// - memory stays under http::memory_bound();
/// - the server recovers immediately when the attackers have gone, and serves newcomers.
OverloadOutcome run_overload(const sim::WorldOptions& options, const OverloadRun& run = {});

/// Runs an overload as a scenario.
Outcome with_overload(const sim::WorldOptions& options);

}  // namespace weir::simulate
