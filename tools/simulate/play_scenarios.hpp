// Scenarios in which more happens than that an HTTP service is asked.
#pragma once

#include "tools/simulate/scenarios.hpp"

namespace weir::simulate {

/// Pages that are routes, or services, and change while they are asked for and faults strike.
Outcome with_routes(const WorldOptions& options);
Outcome with_services(const WorldOptions& options);
/// One to five cores that write, tell and call each other.
Outcome with_cores(const WorldOptions& options);
/// One to five cores that publish events for each other until these are stopped.
Outcome with_events(const WorldOptions& options);
/// Questions by datagrams through a network that loses, doubles and cuts.
Outcome with_datagrams(const WorldOptions& options);

}  // namespace weir::simulate
