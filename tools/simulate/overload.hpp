// More connections, requests, bytes and slow peers than the limits of a server allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

/// Little patience, and few connections; a body may have 64 KiB.
http::Limits impatient_limits();

struct OverloadRun {
  http::Limits limits = impatient_limits();  ///< of the server
  std::size_t hoards = 0;  ///< bytes that its handler of bodies holds beyond what it has promised
};

/// What came of it, beside the report.
struct OverloadOutcome {
  Outcome outcome;
  std::size_t attackers_ended = 0;
  std::size_t turned_away = 0;  ///< attackers that were answered by 503
  std::size_t timed_out = 0;    ///< by 408
  std::size_t memory_most = 0;  ///< bytes that the server has held
  std::uint64_t memory_bound = 0;
};

/// A server on two to four cores, three regular clients that stay within its limits, newcomers, and
/// attackers for some seconds. What must hold, with impatient_limits() whatever the server has:
/// regular clients are answered throughout, each answer right; every attacker is answered or
/// closed; no more connections are open than may be; memory stays under http::memory_bound(); and
/// when the attackers have gone, all is as before at once, and newcomers are served.
OverloadOutcome run_overload(const WorldOptions& options, const OverloadRun& run = {});

/// The same as a scenario.
Outcome with_overload(const WorldOptions& options);

}  // namespace weir::simulate
