// Simulates clients that look up names through several name servers.
#pragma once

#include <functional>

#include "tools/simulate/name_zone.hpp"
#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

struct NameRun {
  /// Changes what the servers know, but not what the client expects of them. The test must find a
  /// violation then.
  std::function<void(Zone&)> change = {};
  bool exact = true;  ///< false: the network loses, duplicates and delays datagrams
};

/// Runs one to three name servers, services on hosts, and a client; see NameClient.
Outcome run_names(const sim::WorldOptions& options, const NameRun& run);

/// Runs names as a scenario: in most runs the network is without faults.
Outcome with_names(const sim::WorldOptions& options);

}  // namespace weir::simulate
