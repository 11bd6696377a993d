// The use of an HTTP proxy (RFC 9110 §9.3.6, RFC 9112 §3.2).
#pragma once

#include <string>

#include "weir/base/result.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Returns true if connections for `url` go to the proxy.
bool uses_proxy(const Url& url, const ClientOptions& options) noexcept;

/// Returns true if requests for `url` have the absolute form: they go to a proxy without a tunnel.
bool uses_absolute_form(const Url& url, const ClientOptions& options) noexcept;

/// Returns the line of the Proxy-Authorization header; empty without credentials.
std::string authorization_line(const ProxyOptions& proxy);

/// Asks the proxy at the other end of `stream` for a tunnel to the host and port of `url`.
/// Errors: ClientError::proxy_refused if the status of its response is not 2xx; bad_response,
/// connection_lost; Errc::cancelled.
/// Cancel: the connection can only be closed.
Task<Result<>> open_tunnel(Stream& stream, const Url& url, const ClientOptions& options);

}  // namespace weir::http
