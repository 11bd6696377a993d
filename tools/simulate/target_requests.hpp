// Random request targets, and the answers that a server must give to them.
#pragma once

#include <cstddef>
#include <string>

#include "tools/simulate/regular_clients.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// Draws a request to add_decoding_routes(): path segments in any encoding, a query, numbers or an
/// absolute target. Some requests have a method that the path does not have, or a target that the
/// server must reject. The head has any form that HTTP/1.1 or HTTP/1.0 allows. The check derives
/// the answer from the drawn values, and decodes nothing.
CheckedRequest draw_target_request(sim::Random& random, std::size_t id);

}  // namespace weir::simulate
