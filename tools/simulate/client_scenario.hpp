// Simulates HTTP clients whose server closes connections at the moments at which they use them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/net/tcp.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

struct ClientScenarioOptions {
  unsigned workers = 10;   ///< number of clients, each with one connection at a time
  unsigned requests = 30;  ///< number of requests of each client
  double cut_share = 0;    ///< share of the requests in which the server closes the connection
  bool retries = true;     ///< false: GET requests are sent as PATCH, so the client must not retry
};

/// The server closes a connection that is idle for 5 s, give or take 5 ms. It also closes at any
/// byte of a request or a response, but never in the first exchange of a connection. Each client
/// sends its next request after about 5 s. The test requires these rules:
/// - no POST arrives twice;
/// - a GET succeeds unless the server cut its response;
/// - each success has the whole response.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class ClientScenario {
 public:
  ClientScenario(sim::Random& random, const ClientScenarioOptions& options) noexcept
      : random_(&random), options_(options) {}

  /// Serves port 80 until the loop drains.
  Task<Result<>> serve(Scope& scope);
  /// Sends all requests to the host "server".
  Task<Result<>> ask(Scope& scope);

  std::string find_violation() const;
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of POST requests that have failed.
  std::size_t lost_posts() const noexcept { return lost_posts_; }
  /// Returns the number of connections that the server has accepted.
  std::size_t connections() const noexcept { return connections_; }

 private:
  struct Cut {
    std::size_t read;     ///< bytes of the request that the server reads
    std::size_t written;  ///< bytes of the response that it sends
  };

  Task<> serve_connection(tcp::Stream stream);
  Task<bool> receive(tcp::Stream& stream, std::string& input, const Cut& cut);
  Cut draw_cut(bool first);
  Task<> send_requests(unsigned worker);
  void fail_with(std::string_view what, std::string_view line);

  sim::Random* random_;
  ClientScenarioOptions options_;
  std::map<std::string, int> arrivals_;  ///< number of arrivals of each request line
  std::set<std::string> cut_responses_;  ///< lines of requests whose responses were cut
  std::size_t answered_ = 0;
  std::size_t lost_posts_ = 0;
  std::size_t connections_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
