// What is wrong with a graph of services, in words, all at once.
#pragma once

#include <string>
#include <vector>

#include "weir/app/graph.hpp"

namespace weir::wiring {

/// One line for each fault, none twice: who is missing, which choice is open, what goes in circles,
/// who asks for something of another core. Empty: everything can start. When `missing_may_come`,
/// nobody's absence is a fault. `serves_routes`: routes have somewhere to go.
std::vector<std::string> find_problems(const Graph& graph, bool missing_may_come,
                                       bool serves_routes);

}  // namespace weir::wiring
