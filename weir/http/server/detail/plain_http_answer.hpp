// The answer of an HTTPS server to a client that speaks plain HTTP.
#pragma once

#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::http {

/// Returns the answer to the first bytes of a client that speaks no TLS: 400 with a line that names
/// https, if they begin like a request of any method, or like the preface of HTTP/2. The answer to
/// HEAD has no body. Returns an empty text for other bytes.
/// Lifetime: the text lives as long as the process.
std::string_view plain_http_answer(Bytes first) noexcept;

}  // namespace weir::http
