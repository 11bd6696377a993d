// Simulates clients that stay within every limit of a server, while others overload it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "weir/base/result.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// A request with the check of its response.
struct CheckedRequest {
  /// Returns the violation of a complete response; empty if it is right.
  using Check = std::function<std::string(const sim::HttpResponse& response)>;

  std::string method = "GET";
  std::string text;  ///< bytes to send
  Check check;
  /// Connection header of the response. The server closes the connection after "close".
  std::string connection = {};
};

/// Draws a request of sim::HttpRequest, which does not close its connection.
CheckedRequest draw_regular_request(sim::Random& random, std::size_t id);

struct RegularClientsOptions {
  Endpoint server = {};
  std::size_t connections = 3;
  /// Number of requests of each client; a client sends requests until stop() if there is no number.
  std::optional<std::size_t> requests = {};
  CheckedRequest (*draw)(sim::Random& random, std::size_t id) = draw_regular_request;
  bool checks_date = false;  ///< true: the Date of each response is the present second
};

/// Each client opens one connection in the first half second and sends requests on it. The test
/// requires that every request gets one response, which is correct and arrives soon. The server
/// announces a close and closes the connection only after a request that asks for the close. The
/// client then opens another connection.
/// Threads: those of one World.
/// Lifetime: outlives the tasks that run() spawns.
class RegularClients {
 public:
  explicit RegularClients(const RegularClientsOptions& options) : options_(options) {}

  /// Runs the clients.
  /// Cancel: closes their connections.
  Task<> run(Scope& scope);
  /// Stops the clients after their present request.
  void stop() noexcept { stopping_ = true; }
  /// Returns the violation; empty if all rules held.
  const std::string& violation() const noexcept { return violation_; }
  std::size_t answered() const noexcept { return answered_; }

 private:
  Task<> run_client(Scope& scope);
  Task<Result<>> send_requests(Stream& stream, loop::PlatformClock& clock, sim::Random& random,
                               std::size_t& id);
  bool is_done(std::size_t id) const noexcept {
    return stopping_ || !violation_.empty() || (options_.requests && id >= *options_.requests);
  }

  RegularClientsOptions options_;
  std::string violation_;
  std::size_t answered_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::simulate
