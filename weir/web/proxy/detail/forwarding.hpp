// The headers and the target that a reverse proxy passes on (RFC 9110 §7.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/client/interim_response.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http {

/// Number of distinct options that Connection may have beside keep-alive, te and upgrade. The work
/// for a message thus grows with its length only.
inline constexpr std::size_t connection_options_max = 64;

/// Returns the URL of a request at the upstream `base`. The path and the query of the client stay
/// as they were sent.
/// Errors: not_found if the path does not begin with options.strip_prefix; those of Url::parse().
Result<Url> upstream_url(const Url& base, const Request& request,
                         const ReverseProxyOptions& options);

/// Adds the headers of the client's request that an upstream gets, and those of the proxy.
/// Errors: bad_input if Connection has more than connection_options_max options.
Result<> forward_request_headers(const Request& request, const ReverseProxyOptions& options,
                                 ClientRequest& out);

/// Returns the number of proxies to which this request may still go: the Max-Forwards of OPTIONS
/// and TRACE (RFC 9110 §7.6.2), at most 1,000,000; std::nullopt without that header, and for other
/// methods.
/// Errors: bad_input for a header that is no number, or for two of them.
Result<std::optional<std::uint64_t>> max_forwards_of(const Request& request);

/// Returns the head of the request as text, without credentials, for the answer to TRACE (RFC 9110
/// §9.3.8).
std::string reflected_request(const Request& request);

// Trailers obey the rules of headers in both directions. Fields that belong to a head, or that the
// proxy itself sets, are left out of them (RFC 9110 §6.5.1).

/// Adds the trailers of the client's request that an upstream gets, after the end of its body.
void forward_trailers(const RequestHead& request, const BodySource& body, BodySink& out);
/// Adds the trailers of the upstream's response that the client gets, after the end of its body.
void forward_trailers(const ClientResponse& response, BodySink& out);

/// Adds the headers of the upstream's response that the client gets.
/// Errors: ClientError::bad_response if Connection has more than connection_options_max options.
Result<> forward_response_headers(const ClientResponse& response,
                                  const ReverseProxyOptions& options, Response& out);

/// Returns the headers of an interim response of the upstream that the client gets.
Headers interim_headers(const InterimResponse& interim, const ReverseProxyOptions& options);

/// Replaces a Location and a Content-Location of the upstream `base` by the references by which the
/// client reaches them through the proxy; see ReverseProxyOptions::rewrite_locations.
void rewrite_locations(const Url& base, const ReverseProxyOptions& options, Response& out);

/// Adds the headers of the upstream's response that accepts a WebSocket.
/// Errors: ClientError::bad_response if Connection has more than connection_options_max options.
Result<> forward_response_headers(const Headers& headers, const ReverseProxyOptions& options,
                                  Response& out);

/// Returns the number of entries of all Via headers.
std::size_t count_hops(const RequestHead& head) noexcept;

/// Returns the address of a peer without its port: "192.0.2.1", "2001:db8::1"; "unknown" for one
/// that is not an IP address.
std::string client_text(const os::Address& peer);

}  // namespace weir::http
