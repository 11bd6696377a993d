// The HTTP/1.1 client of one core: requests over pooled connections, with bodies that are streamed
// in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_error.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ClientPool;

/// ClientOptions sets up a Client.
struct ClientOptions {
  ClientLimits limits = {};
  /// The path of a Unix socket, or a name that begins with '@' in the abstract namespace. Each
  /// connection goes there, and a URL's host is only the Host header. Empty: TCP.
  std::string unix_socket;
  dns::Resolver* resolver = nullptr;  ///< nullptr: the resolver of the core
};

/// Sends requests and keeps connections for later requests to the same origin. A service has one
/// Client on each core.
///
///     http::Client client;
///     auto response = co_await client.get("http://localhost:8080/notes/7");
///     if (!response) co_return fail(response.error());
///     const auto note = co_await response->json<Note>();
///
/// *Pool.* A connection becomes idle when its response has ended and both sides keep it alive. The
/// loop watches each idle connection. A FIN, a reset or any byte removes the connection from the
/// pool at that moment, as do ClientLimits::idle_timeout, the server's "Keep-Alive: timeout" less
/// the larger of 1 s and 10 %, and ClientLimits::age_max. A connection whose response was dropped
/// or cancelled before its end is closed, and never used again.
///
/// *Retry.* A request is sent a second time, at most once and on a new connection, only if the
/// first connection was reused, no byte of a response came, and the body is not a stream. In
/// addition the method must be idempotent (see is_idempotent()), the request must have an
/// Idempotency-Key, or the kernel must have taken none of its bytes.
///
/// *Redirects.* GET and HEAD follow 301, 302, 303, 307 and 308. Other methods follow 303, 301 and
/// 302 as a GET without a body, and follow 307 and 308 if the body is not a stream. If the origin
/// changes, the headers Authorization, Cookie and Proxy-Authorization are not sent again. The
/// client does not follow a redirect from https to http.
///
/// Every function that sends has these errors: ClientError; Errc::unsupported for https;
/// Errc::bad_input for a header or a method that cannot be sent; the error of the body's stream
/// function; Errc::cancelled; Errc::closed after close(). A response of any status is no error.
/// Threads: one core's.
/// Lifetime: outlives its tasks and its responses (asserted).
class Client {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Closes all idle connections.
  ~Client();

  /// Sends the request and waits for the head of its final response. 1xx responses are dropped.
  /// Errors: see above.
  /// Cancel: closes the connection; the server may have received the request.
  Task<Result<ClientResponse>> send(ClientRequest request);

  /// Sends a GET request.
  /// Errors: those of Url::parse(), and see above.
  /// Cancel: closes the connection.
  Task<Result<ClientResponse>> get(std::string url);

  /// Sends a POST request with this body.
  /// Errors: those of Url::parse(), and see above.
  /// Cancel: closes the connection; the server may have received the request.
  Task<Result<ClientResponse>> post(std::string url, MediaType type, Body body);

  /// Sends a POST request with `value` as JSON.
  /// Errors: those of Url::parse(), and see above.
  /// Cancel: closes the connection; the server may have received the request.
  template <class T>
  Task<Result<ClientResponse>> post_json(std::string url, const T& value) {
    detail::JsonBodyWriter writer;
    json::Codec<T>::write(writer, value);
    return post(std::move(url), json_type, writer.finish());
  }

  /// Closes all idle connections. Later requests fail with Errc::closed; those in progress go on.
  void close() noexcept;

  /// Returns the number of open connections, in use and idle.
  std::size_t connection_count() const noexcept;
  /// Returns the number of idle connections.
  std::size_t idle_count() const noexcept;

 private:
  ClientOptions options_;
  std::unique_ptr<ClientPool> pool_;
};

}  // namespace weir::http
