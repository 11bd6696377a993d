// Random requests with JSON bodies, and the answers that a server must give to them.
#pragma once

#include <cstddef>

#include "tools/simulate/regular_clients.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// Draws a request with a Document to add_decoding_routes(). The server must answer with the same
/// document in its usual form, or with 400 and the place of the error.
CheckedRequest draw_document_request(sim::Random& random, std::size_t id);

}  // namespace weir::simulate
