// The ids of requests, for logs.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::http {

/// Returns the prefix of the ids of requests, for a server that begins at `now` on `core`. Two
/// servers of one service, one after the other or side by side, make different ids.
std::string request_id_prefix(WallTime now, unsigned core);

/// Returns true if a text from a client may be a request's id: 1 to 128 visible characters,
/// without quotation marks and backslashes.
bool is_request_id(std::string_view text) noexcept;

}  // namespace weir::http
