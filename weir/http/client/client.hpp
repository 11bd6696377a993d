// The HTTP client of one core: requests over pooled connections, with bodies that are streamed
// in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/client/request_methods.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/task/task.hpp"

namespace weir {
class Scope;
}

namespace weir::http {

class ClientPool;
class ResponseSource;
namespace detail {
struct ClientAccess;
}
enum class Redirect : std::uint8_t;

/// ClientWebSocketOptions sets up a WebSocket of a client.
struct ClientWebSocketOptions {
  std::vector<std::string> subprotocols = {};  ///< offered to the server, the preferred one first
  /// Further headers of the request, such as Authorization or Origin. One that the client or the
  /// handshake sets itself, such as Connection, Content-Length or TE, is Errc::bad_input.
  Headers headers = {};
  WebSocketLimits limits = {};
  /// Offers to compress messages. Off by default.
  std::optional<WebSocketCompression> compression = {};
  /// True to open a stream of a connection of HTTP/2 if the server offers that (RFC 8441); false to
  /// open a connection of HTTP/1.1 always.
  bool http2 = true;
};

/// Returns an upper bound, in bytes, of the memory of one WebSocket of a client with a connection
/// of its own. ClientMemoryBound counts none of them. A stream of HTTP/2 needs less. The bound
/// excludes the same as ClientMemoryBound. A bound that does not fit is the largest number. `head`
/// is that of ResponseLimits.
std::uint64_t memory_bound(const ClientWebSocketOptions& options,
                           const HeadLimits& head = {}) noexcept;

/// Sends requests, and keeps connections for later requests to the same origin. A program has one
/// Client on each core.
///
///     http::Client client;
///     auto response = co_await client.get("http://localhost:8080/notes/7");
///     if (!response) co_return fail(response.error());
///     const auto note = co_await response->json<Note>();
///     auto added = co_await client.post("http://localhost:8080/notes", *note);
///
/// *Pool.* A connection becomes idle when its response has ended and both sides keep it open. Any
/// byte, the end of the stream or a reset removes an idle connection from the pool at that moment.
/// So do ClientLimits::idle_timeout, the server's "Keep-Alive: timeout" less the larger of 1 s and
/// 10 %, and ClientLimits::age_max. A connection whose response was cancelled or dropped before its
/// end is closed.
///
/// *Retry.* A request is sent a second time, at most once and on a new connection, if a reused
/// connection was lost before the first byte of a response. The method must be idempotent (see
/// is_idempotent()), or the request must have an Idempotency-Key, or the kernel must have taken
/// none of its bytes. A body whose stream was called is never sent again.
///
/// *HTTP/2.* A server of https URLs may choose HTTP/2 if ClientOptions::tls offers "h2". With
/// ClientOptions::plain_http2, the client speaks HTTP/2 with the servers of http URLs. A connection
/// then carries up to H2Limits::streams_max requests at a time, or as many as the server allows.
/// Further ones open another connection, or wait. A response that is cancelled or dropped does not
/// affect the others. The client sends a request again, at most three times, if the server has
/// refused it or ignores it after a GOAWAY (RFC 9113 §8.7). The request fails with
/// ClientError::not_processed if it is refused each time, or if the function of its body was
/// called. The caller may then send it again, whatever its method is. Other requests follow the
/// rules above.
///
/// *Redirects.* The client follows 301, 302, 303, 307 and 308. It sends a GET without a body after
/// a 303, and instead of a POST after a 301 or 302. It returns the response if it would have to
/// send a streamed body again, or if there is no Location. If the origin changes, it drops
/// Authorization, Cookie, Proxy-Authorization and ClientOptions::sensitive_headers. It does not
/// follow a redirect from https to http.
///
/// *TLS.* An https URL needs a server whose certificate is valid for the URL's host; see
/// ClientOptions::tls. A refused certificate or another failed handshake is a tls::Error, and the
/// log has its line: "weir: https://a.example: wrong_name: a.example is not among b.example". The
/// client writes at most one such line in a second.
///
/// *Proxy and cookies.* See ProxyOptions and CookieJar.
///
/// *Streams.* A response with a status of 300 or more, and a response that is complete, end the
/// request's body early (RFC 9113 §8.1). A connection of HTTP/1.1 is not used again then. Otherwise
/// the client sends the whole request before it returns the response. If a response comes before
/// that and the server takes no more of the body for ClientLimits::body_timeout, the client returns
/// the response. It waits for 1 s only if the response fills the room that the client has for it.
/// For a server that streams its response while it reads, such as an echo, give send() a Scope.
///
/// Every function that sends has these errors: ClientError, tls::Error, the error of an invalid
/// request, Errc::bad_input for a method that cannot be sent, Errc::cancelled. They fail with
/// Errc::limit_reached if the head is longer than the server of HTTP/2 allows; the request is not
/// sent then. They also pass on the error of the body's stream function. A response of any status
/// is no error.
/// Threads: one core's.
/// Lifetime: outlives its tasks and its responses (asserted).
class Client : public RequestMethods<Client> {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Closes all idle connections.
  ~Client();

  /// Sends the request and waits for the head of its final response. 1xx responses are dropped, or
  /// go to ClientRequest::on_interim().
  /// Errors: see above.
  /// Cancel: closes the connection, or the stream of HTTP/2; the server may have received the
  /// request.
  Task<Result<ClientResponse>> send(ClientRequest request) {
    return begin_send(nullptr, std::move(request));
  }
  /// Sends the request, and returns when the head of its final response has arrived. A task of
  /// `scope` still sends a long or streamed body then, also after the end of the response. The task
  /// ends early if the response is destroyed or has a status of 300 or more. If it fails, for
  /// example in the function of the body, the reads of the response fail with its error. A server
  /// that has answered may leave the rest of the body unread; that is no error.
  /// Errors: see above.
  /// Cancel: closes the connection, or the stream of HTTP/2; the server may have received the
  /// request.
  /// Lifetime: the client, and all that the function of the body refers to, outlive the scope.
  Task<Result<ClientResponse>> send(Scope& scope, ClientRequest request) {
    return begin_send(&scope, std::move(request));
  }

  /// Opens a WebSocket to a URL with the scheme ws, wss, http or https, and calls `serve` for it:
  ///
  ///     const auto ended = co_await client.websocket("wss://a.example/feed",
  ///         [](http::WebSocket& socket) -> Task<Result<>> {
  ///           WEIR_CO_TRY(co_await socket.send("hello"));
  ///           WEIR_CO_TRY(const auto answer, co_await socket.read());
  ///           ...
  ///         });
  ///
  /// The closing handshake follows the end of the task of `serve`.
  ///
  /// The WebSocket is a stream of a connection of HTTP/2 if the server speaks HTTP/2 and its
  /// settings offer that (RFC 8441). The client waits for these settings. The stream counts as a
  /// request of the connection until it is closed. Otherwise the WebSocket has a connection of its
  /// own, which ClientLimits::connections_max does not count.
  /// Returns: the result of the task; a success if the task returns the end of a connection that
  /// the server has closed with a Close.
  /// Errors: ClientError; tls::Error; error_of() the status of another response; those of the task.
  /// Cancel: cancels the task, waits for it and closes the connection, or the stream of HTTP/2.
  Task<Result<>> websocket(std::string url, WebSocketFunction serve,
                           ClientWebSocketOptions options = {});

  /// Makes a request for send(); get(), post() and the others use it.
  static ClientRequest request(Method method, std::string_view url) { return {method, url}; }

  /// Returns the number of open connections, in use and idle.
  std::size_t connection_count() const noexcept;
  /// Returns the number of idle connections.
  std::size_t idle_count() const noexcept;

 private:
  friend struct detail::ClientAccess;

  Task<Result<ClientResponse>> begin_send(Scope* scope, ClientRequest request) {
    if (options_.observer != nullptr) return send_observed(scope, std::move(request));
    return send_in(scope, std::move(request));
  }
  Task<Result<ClientResponse>> send_observed(Scope* scope, ClientRequest request);
  Task<Result<ClientResponse>> send_in(Scope* scope, ClientRequest request);
  ClientResponse finish(ClientRequest& request, ClientResponse response);
  bool asks_for_codings(const ClientRequest& request) const noexcept;
  Result<std::string> head_of(const ClientRequest& request, WallTime now);
  Result<Redirect> follow(ClientRequest& request, const ClientResponse& response);
  void store_cookies(const ResponseSource& source, const Url& url, WallTime now);

  ClientOptions options_;
  std::unique_ptr<ClientPool> pool_;
};

}  // namespace weir::http
