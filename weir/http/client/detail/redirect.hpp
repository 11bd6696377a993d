// The rules of redirects (RFC 9110 §15.4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// The decision about a response.
enum class Redirect : std::uint8_t { none, follow };

/// Turns `request` into the request that follows a response with `status` and this Location. 303
/// makes a GET of every method but HEAD, as 301 and 302 make one of POST; the body is dropped then.
/// A change of origin drops Host, the credentials and the headers named in `sensitive`.
/// Returns: Redirect::none, without a change, if the response is no redirect or the request has a
/// streamed body that must be sent again. Errors: ClientError::bad_redirect for a Location that is
/// no URL or leads from https to http.
Result<Redirect> follow_redirect(ClientRequest& request, Status status, std::string_view location,
                                 std::span<const std::string> sensitive);

}  // namespace weir::http
