// Clients that send random pipelined requests to an HTTP server and check its responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/http_testing/detail/http_request.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::sim {

/// HttpTrafficOptions sets the server of an HttpTraffic and the number of its requests.
struct HttpTrafficOptions {
  Endpoint server;
  std::size_t connections = 6;
  std::size_t requests_max = 10;  ///< maximum for each connection
};

/// One connection: its requests, its behaviour and its result.
struct HttpConnection {
  enum class CloseMode : std::uint8_t {
    after_responses,
    lingers,     ///< closes after all responses and a wait for unexpected data
    half_close,  ///< half-closes, then waits for the responses and the end
    early,       ///< closes before all responses have arrived
  };
  Random random{0};  ///< for all choices of this connection
  std::vector<HttpRequest> requests;
  std::string text;  ///< the text of all requests
  CloseMode close_mode = CloseMode::after_responses;
  std::size_t close_after_bytes = 0;  ///< number of response bytes before an early close

  Instant started_at = never;  ///< start of the connect
  Instant ended_at = never;
  bool connected = false;
  Endpoint local;  ///< local address, set when connected
  std::string received;
  std::error_code read_error;  ///< why reading has ended; no error if it was complete
  bool timed_out = false;      ///< true if neither data nor the end arrived in time

  /// Returns the final responses to its requests. The last one may be incomplete.
  std::vector<HttpResponse> answers() const;
};

/// The deviation that a connection may show because of a fault, or because of the test.
enum class HttpTolerance : std::uint8_t {
  none,           ///< no deviation: every request must be answered
  orderly_close,  ///< the server may close between responses; the last one may be an error
  early_close,    ///< the server may close at any time; the last response may be an error
  one_failure,    ///< an early close, or status 500 for one request
};

/// HttpTraffic sends requests to a server with the resources that HttpRequest lists, and checks
/// what its clients receive. Every request gets exactly one response, in the order of the
/// requests, and none is incomplete. An interim response comes at most once for a request, and only
/// if the request expects it. The server announces a close and closes the connection after the
/// last response if the request asks for the close. Otherwise the server keeps the connection for
/// further requests. A connection with a tolerance may be closed early. Its last response may be
/// incomplete unless the tolerance is orderly_close.
/// Threads: those of one World.
/// Lifetime: outlives the tasks that run() spawns.
class HttpTraffic {
 public:
  explicit HttpTraffic(const HttpTrafficOptions& options) : options_(options) {}
  HttpTraffic(const HttpTraffic&) = delete;
  HttpTraffic& operator=(const HttpTraffic&) = delete;

  /// Runs the clients of one host; for Runtime::run_on_each_core(). It opens the connections at
  /// moments that the host draws, and returns when all have ended.
  /// Cancel: closes the connections.
  Task<> run(Scope& scope);

  /// Returns the first violation, or an empty text; for World::check() after the run.
  /// `tolerance_of` is called for each connection that violates the strict rules. The connection
  /// is then checked again with the tolerance that it returns.
  std::string find_violation(
      const std::function<HttpTolerance(const HttpConnection&)>& tolerance_of = {}) const;
  /// Returns the offset at which the first `requests` requests end, in bytes sent, on the
  /// connection with the local address `local`. Returns 0 if no connection has that address.
  std::size_t end_of(const Endpoint& local, std::size_t requests) const;
  /// Returns the number of complete responses.
  std::size_t answered() const;

 private:
  HttpConnection& plan_connection(std::uint64_t seed);
  Task<> run_connection(HttpConnection& connection);
  Task<Result<>> send_requests(HttpConnection& connection, Stream& stream);
  Task<Result<>> receive_responses(HttpConnection& connection, Stream& stream);
  Task<Result<>> linger(HttpConnection& connection, Stream& stream);

  HttpTrafficOptions options_;
  std::deque<HttpConnection> connections_;
};

}  // namespace weir::sim
