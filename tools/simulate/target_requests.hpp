// Random request targets, and the answers that a server must give to them.
#pragma once

#include <cstddef>
#include <string>

#include "tools/simulate/regular_clients.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// Draws a request to add_decoding_routes(): a path with segments that are encoded in any way, a
/// query, numbers, an absolute target, a method that the path does not have, or a target that the
/// server must reject. The head has any form that HTTP/1.1 or HTTP/1.0 allows. The check knows the
/// answer from the choices, and decodes nothing.
CheckedRequest draw_target_request(sim::Random& random, std::size_t id);

}  // namespace weir::simulate
