// The HTTP/1.1 client of one core, with bodies that are streamed in both directions.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// ClientOptions sets up a Client.
struct ClientOptions {
  ClientLimits limits = {};
  /// The path of a Unix socket, or a name that begins with '@' in the abstract namespace. Each
  /// connection goes there, and a URL's host is only the Host header. Empty: TCP.
  std::string unix_socket;
  dns::Resolver* resolver = nullptr;  ///< nullptr: the resolver of the core
};

/// Sends requests over HTTP/1.1. Each request has a connection of its own, which is closed when its
/// response has ended or is destroyed. A redirect is a response like any other.
///
///     http::Client client;
///     auto response = co_await client.get("http://localhost:8080/notes/7");
///     if (!response) co_return fail(response.error());
///     const auto note = co_await response->json<Note>();
///
/// Every function that sends has these errors: ClientError; Errc::unsupported for https;
/// Errc::bad_input for a header or a method that cannot be sent; the error of the body's stream
/// function; Errc::cancelled. A response of any status is no error.
/// Threads: one core's.
/// Lifetime: outlives its tasks and its responses.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

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

 private:
  ClientOptions options_;
};

}  // namespace weir::http
