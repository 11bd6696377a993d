// Looking into a running graph: for App::explain() and for what is said of failures.
#pragma once

#include <string>

#include "weir/app/lifecycle/app_status.hpp"
#include "weir/app/life.hpp"

namespace weir::wiring {

/// Threads: the home core's.
Explanation explain(const Graph& graph, const Life& life);

/// The service's, with its core where there is one for each.
std::string full_name_of(const Node& node);

/// "Database on core 1: could not start: Connection refused; required by Store, required by Web".
std::string tell_failure(const Graph& graph, const Life::Failure& failure);

}  // namespace weir::wiring
