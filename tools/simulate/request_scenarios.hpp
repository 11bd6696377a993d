// Simulates clients whose requests a server has to decode: targets, and JSON bodies.
#pragma once

#include "tools/simulate/scenarios.hpp"
#include "weir/http/router/router.hpp"

namespace weir::simulate {

struct DecodingRun {
  /// Adds the routes of the server. The default is add_decoding_routes().
  void (*add_routes)(http::Router& routes) = nullptr;
  std::size_t connections = 4;
  std::size_t requests = 25;  ///< number of requests of each connection
};

/// Run a server with these routes, and clients that check each answer: requests with targets of
/// all kinds, or with documents.
Outcome run_targets(const sim::WorldOptions& options, const DecodingRun& run);
Outcome run_documents(const sim::WorldOptions& options, const DecodingRun& run);

/// Run them as scenarios.
Outcome with_targets(const sim::WorldOptions& options);
Outcome with_documents(const sim::WorldOptions& options);

}  // namespace weir::simulate
