// Explanations of a running graph, for App::explain() and for texts of failures.
#pragma once

#include <string>

#include "weir/app/lifecycle/app_status.hpp"
#include "weir/app/lifecycle/detail/lifecycle.hpp"

namespace weir::inject {

/// Returns a snapshot of all instances.
/// Threads: the app's core.
Explanation explain(const Graph& graph, const Lifecycle& lifecycle);

/// Returns the name of the service, with its core unless all cores use the instance.
std::string full_name_of(const Instance& instance);

/// Returns "Store on core 1 waits for App::start(id); Database on core 1".
std::string waiting_text(const Graph& graph, const Lifecycle& lifecycle, const Instance& instance);

/// Returns "Database on core 1 could not start: Connection refused; required by Store on core 1;
/// required by Web on core 1". The text names at most 32 dependants.
std::string failure_text(const Graph& graph, const Lifecycle::Failure& failure);

}  // namespace weir::inject
