// The head of a client's request, and the header of a response that limits its connection.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/syntax/status.hpp"

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

// Redirects.

/// The decision about a response.
enum class Redirect : std::uint8_t { none, follow };

/// Turns `request` into the request that follows a response with `status` and this Location. 303
/// makes a GET of every method but HEAD, as 301 and 302 make one of POST. The body is dropped then,
/// and with it all that describes it: each Content-* header, Digest, Repr-Digest, Last-Modified,
/// Expect and Trailer (RFC 9110 §15.4).
/// A change of origin drops Host, the credentials and the headers named in `sensitive`.
/// Returns: Redirect::none, without a change, if the response is no redirect or the request has a
/// streamed body that must be sent again. Errors: ClientError::bad_redirect for a Location that is
/// no URL, also after encode_reference(), or leads from https to http.
Result<Redirect> follow_redirect(ClientRequest& request, Status status, std::string_view location,
                                 std::span<const std::string> sensitive);

}  // namespace weir::http
