// The use of an HTTP proxy (RFC 9110 §9.3.6, RFC 9112 §3.2).
#pragma once

#include <string>
#include <string_view>

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
/// Errors: Errc::bad_configuration for credentials that no header can hold.
Result<std::string> authorization_line(const ProxyOptions& proxy);

/// Returns the request for a tunnel to the host and port of `url` (RFC 9110 §9.3.6).
/// Errors: those of authorization_line().
Result<std::string> connect_request(const Url& url, const ProxyOptions& proxy);

/// Sends the request for a tunnel to the proxy at the other end of `stream`.
/// Errors: ClientError::proxy_refused if the status of its response is not 2xx; bad_response,
/// connection_lost; Errc::cancelled.
/// Cancel: the connection can only be closed.
/// Lifetime: all arguments outlive the task.
Task<Result<>> open_tunnel(Stream& stream, std::string_view request, const ClientLimits& limits);

}  // namespace weir::http
