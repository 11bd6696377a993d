// The head of a client's request, and the header of a response that limits its connection.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_request.hpp"

namespace weir::http {

/// The parts of a request's head that depend on the client.
struct HeadContext {
  std::string_view target;           ///< the request target
  std::string_view cookies = {};     ///< the value of the Cookie header; empty: no header
  std::string_view more_lines = {};  ///< complete header lines
};

/// Returns the head of the request, with its empty line. A Cookie header of the request replaces
/// that of the context.
/// Errors: Errc::bad_input for a header that belongs to the client.
Result<std::string> request_head(const ClientRequest& request, const HeadContext& context);

/// Returns true if a repetition of the request has no other effect: its method is idempotent, or it
/// has an Idempotency-Key.
bool is_repeatable(const ClientRequest& request) noexcept;

/// Returns the time for which a connection may be idle according to a Keep-Alive header: its
/// timeout less the larger of 1 s and 10 %. Duration::max() without a timeout.
Duration idle_time_of(std::string_view keep_alive) noexcept;

}  // namespace weir::http
