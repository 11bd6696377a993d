// The body of a response whose bytes are not sent: one to HEAD, or a 304.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/http/message/body.hpp"

namespace weir::http::detail {

inline Task<Result<>> send_nothing(BodySink&) {
  co_return {};
}

/// Returns a body of this length, or of an unknown one, without bytes. The server must not send it,
/// unless it is empty.
inline Body announced_body(std::optional<std::uint64_t> length) {
  return Body(StreamFunction(send_nothing), length);
}

}  // namespace weir::http::detail
