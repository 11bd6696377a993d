// A reverse proxy: a handler that passes requests on to other servers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/matching/core_demands.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/ws/websocket_limits.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ProxyCore;

/// The way in which a reverse proxy chooses an upstream for a request.
enum class UpstreamChoice : std::uint8_t {
  round_robin,     ///< one after the other
  least_requests,  ///< the one with the fewest requests of this core in progress
};

/// The treatment of the headers that tell an upstream about the client: X-Forwarded-For,
/// X-Forwarded-Proto and X-Forwarded-Host, and Forwarded (RFC 7239). Behind trusted_proxies(),
/// `replace` tells the client that it has found.
enum class ForwardedHeaders : std::uint8_t {
  replace,  ///< those of the client are dropped, so that no client can invent them
  append,   ///< the proxy adds to those of the client, which is a proxy that the program trusts
  none,     ///< those of the client are dropped, and the proxy adds none
};

/// ReverseProxyOptions sets up a ReverseProxy.
struct ReverseProxyOptions {
  /// The limits, timeouts and TLS of the requests to the upstreams. `cookie_jar` and
  /// ClientLimits::redirects_max have no effect: cookies and redirects are passed on.
  ClientOptions client = {};
  /// The limits of the WebSockets to the upstreams. Those to the clients have Limits::websocket.
  WebSocketLimits websocket = {};
  UpstreamChoice choice = UpstreamChoice::round_robin;
  ForwardedHeaders forwarded = ForwardedHeaders::replace;
  /// True to send the header Forwarded too. Upstreams that do not know it ignore it.
  bool rfc7239 = false;
  /// True to pass on the Host of the client. Otherwise the upstream gets its own name.
  bool preserve_host = false;
  /// The begin of the path that the upstream does not get, such as "/api". A request with another
  /// path is answered with 404.
  std::string strip_prefix = {};
  /// True to replace a Location or Content-Location that names the upstream by the path that the
  /// client uses. It has `strip_prefix` in place of the origin and the path of the upstream's URL.
  /// A path that begins with `strip_prefix` stays. Other origins and relative paths stay too.
  bool rewrite_locations = true;
  /// The name of this proxy in the header Via of requests and responses; empty to send none. It is
  /// a token.
  std::string via = "weir";
  /// Number of entries of Via above which a request is answered with 508, because it goes in a
  /// circle.
  unsigned hops_max = 16;
  /// True to pass TRACE on. Its answer shows the client what the proxy adds to requests. Otherwise
  /// the proxy answers 405.
  bool pass_trace = false;
  /// WebSockets at the upstreams of one core, which clients share by address; see client_address().
  /// A further one waits for at most ClientLimits::queue_timeout; 503. If an address or a
  /// connection with at least two fewer waits, one with more gives up its idlest WebSocket, with a
  /// Close of 1013. memory_bound() includes them.
  std::size_t websockets_max = 1024;
  /// Bytes of a request's body that is complete before the request takes an upstream, if its length
  /// is known and half of the requests to the upstreams are in use. Over HTTP/2 the proxy also
  /// keeps this number of bytes of a body, to send an unprocessed request again. It answers 503 if
  /// it has read more.
  std::size_t short_body_max = 64 * 1024;
  /// Number of times that a request may be sent to an upstream, at least 1. Each time it is another
  /// upstream, unless the last one has not processed the request.
  unsigned attempts_max = 3;
  /// Number of failures in a row after which an upstream gets no requests for `eject_time`. It then
  /// has one more chance. If all upstreams are ejected, requests go to the one whose time ends
  /// first. 0 ejects none.
  unsigned failures_max = 3;
  Duration eject_time = std::chrono::seconds(10);
};

/// A handler that passes requests on to one of several upstream servers; reverse_proxy() makes it.
///
/// *Bodies* are streamed, that of the request to the upstream and that of the response to the
/// client, each at the speed of the slower side. The proxy holds one piece at a time. It holds a
/// response of at most 16 KiB with a Content-Length as a whole, so that its upstream is free for
/// others; see also ReverseProxyOptions::short_body_max. The carrier of a message says if it has a
/// body, whatever the method is. A body that decompress_requests() decodes is passed on decoded,
/// without the headers that describe the coding. "Cache-Control: no-transform" keeps the coding of
/// a body in both directions (RFC 9110 §7.7): decompress_requests() and
/// ClientOptions::decompression have no effect then.
///
/// *Early answers.* The proxy passes a response on when its head arrives, also before the end of
/// the request. A status of 300 or more ends the upload, and so does the end of the response. That
/// is no failure of the upstream. Otherwise both directions go on at the same time; see duplex().
/// Each wait for bytes of the client then has the limit ClientLimits::body_timeout of `client`.
///
/// *Headers* of one connection are not passed on (RFC 9110 §7.6.1). These are Connection and those
/// that it names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy and those that begin
/// with Proxy-, except for Proxy-Status of a response. Connection takes away no header that the
/// proxy itself sets: X-Forwarded-For and its kin, Forwarded, Via, Max-Forwards. The length of a
/// body is sent anew, so a message has one length only. The proxy answers "Expect: 100-continue"
/// itself when the upstream takes the body. A response without a Date gets that of this server. 1xx
/// responses of upstreams are passed on to clients of HTTP/1.1 and HTTP/2 (RFC 9110 §15.2). "TE:
/// trailers" of a client is sent anew to the upstream. Some programs behind CGI read a "-" for each
/// character of a name that is no letter and no digit. So X_Forwarded_For and X.Real.IP are dropped
/// like the names that they imitate.
///
/// *Trailers* are passed on if the framing of the other side can carry them. The rules of headers
/// hold for them, and only names of may_be_trailer() pass (RFC 9110 §6.5.1). Credentials, Origin,
/// traceparent and the like do not pass, and neither do imitations of their names. Behind a body
/// with a Content-Length, only HTTP/2 allows trailers. The proxy then waits for them only if the
/// response announces them by Trailer or is gRPC. Without trailers the whole body is passed on,
/// even if its stream then fails.
///
/// *Max-Forwards* of OPTIONS and TRACE is decremented; the proxy itself answers if it is 0 (RFC
/// 9110 §7.6.2).
///
/// *Clients share the upstreams.* A core has as many requests at the upstreams as ClientLimits
/// allows. Clients share them by address; see client_address(). Further requests wait. Addresses
/// are served in turn, and so are the connections of an address. If ClientLimits::waiting_max
/// requests wait, the newest one of the address with the most of them is refused; 503. If an
/// address or a connection with fewer requests waits, a slow request ends; 408, or a reset. It is
/// one that has let its upstream wait for more than a second, at less than 16 KiB per second. The
/// sockets of all upstreams are at most half of the descriptors. Servers without a limit of
/// connections leave them free.
///
/// *Failures.* No upstream that accepts a connection, a broken connection or a malformed response
/// is 502; a timeout is 504. The limits of ClientLimits for waiting requests are 503 with
/// "Retry-After: 1". So is a request if its last upstream says that it has not processed the
/// request. A lack of descriptors or memory of this machine is 503, and no failure of the upstream.
/// A client that leaves cancels the request of the upstream. An upstream that ends an upload whose
/// client was silent for a second has not failed; 502.
///
/// *Retry.* A request goes to another upstream if no connection was opened. It also does if the
/// connection was lost before the head of a response, the method is idempotent and there is no
/// body. The client has a rule of its own for reused connections; see Client. An Idempotency-Key
/// makes no request repeatable, because the upstream may not know it (RFC 9110 §9.2.2). An upstream
/// of HTTP/2 may say that it has not processed a request (RFC 9113 §8.7). Any request is then sent
/// again, to another upstream or to the same one, while the proxy has all bytes of the body that it
/// has read. It is no failure of the upstream.
///
/// *WebSockets* of clients over HTTP/1.1 and HTTP/2 are passed on over HTTP/1.1. The upstream gets
/// Origin and the subprotocols of the client, and decides; the client gets its response if it
/// refuses. Messages are passed on in pieces as they arrive, in both directions, at the speed of
/// the slower side. Each side has pings of its own, and no extension such as permessage-deflate. A
/// Close is passed on with its code and its reason. If a client is lost, the upstream gets a Close
/// with 1001; if an upstream is lost, the client gets 1014. A drain of the server sends 1001 to
/// both.
///
/// Any method is passed on, except for CONNECT (501) and TRACE (405; see
/// ReverseProxyOptions::pass_trace). A request whose Connection has more than 64 different options
/// is answered with 400; a response with more is 502. keep-alive, te and upgrade do not count.
/// Threads: any; each core has a client of its own.
class ReverseProxy {
 public:
  /// Sends the request to an upstream.
  /// Returns: its response, or the error response above.
  /// Cancel: cancels the request of the upstream.
  Task<Response> operator()(Request& request) const;

  /// Makes the plan of the sockets to the upstreams, and returns what the proxy takes on a core.
  /// The server of a route with this handler calls it when it starts.
  /// Errors: throws std::bad_alloc.
  CoreDemands demands(Loop& loop) const;

 private:
  struct State;
  friend ReverseProxy reverse_proxy(std::vector<std::string> upstreams,
                                    ReverseProxyOptions options);
  explicit ReverseProxy(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  ProxyCore& core_of(Loop& loop) const;

  std::shared_ptr<const State> state_;
};

/// Returns a handler that passes requests on to `upstreams`, such as "http://backend:8080". A path
/// of the URL comes before that of each request. A group makes it the handler of all methods:
///
///     router.group("/api").fallback(http::reverse_proxy("http://backend:8080", options));
///
/// Errors: throws std::invalid_argument if a URL or an option is invalid, or without a URL.
ReverseProxy reverse_proxy(std::vector<std::string> upstreams, ReverseProxyOptions options = {});
template <std::convertible_to<std::string_view> Url>  // no braces: they are a list of upstreams
ReverseProxy reverse_proxy(const Url& upstream, ReverseProxyOptions options = {}) {
  std::vector<std::string> upstreams{std::string(std::string_view(upstream))};
  return reverse_proxy(std::move(upstreams), std::move(options));
}

/// Returns the bytes that the side of the upstream adds to a WebSocket at most. It is a part of
/// MemoryBoundOptions::handler_bytes; MemoryBoundOptions::websockets counts the side of the client.
std::size_t websocket_bytes_max(const ReverseProxyOptions& options) noexcept;

/// Upper bounds, in bytes, of the memory that a reverse proxy holds beside its server. They exclude
/// the same as ClientMemoryBound.
struct ProxyMemoryBound {
  std::uint64_t request;  ///< one request, for MemoryBoundOptions::handler_bytes
  /// One core: its connections to the upstreams, and its WebSockets. It is a part of
  /// MemoryBoundOptions::core_bytes.
  std::uint64_t core;
};

/// Returns the bounds of a proxy with these options and this number of upstreams. The descriptors
/// may allow fewer connections. A server counts its proxies in its check of memory at the start, if
/// they are the handlers of its routes.
ProxyMemoryBound memory_bound(const ReverseProxyOptions& options,
                              std::size_t upstreams = 1) noexcept;

}  // namespace weir::http
