// The side of an HTTP/2 connection that a session is.
#pragma once

#include <cstdint>

namespace weir::http {

enum class H2Role : std::uint8_t { server, client };

}  // namespace weir::http
