// Simulates clients of HTTP/2 that send many requests over one connection at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

struct Http2ScenarioOptions {
  unsigned cores = 2;      ///< number of cores of the server
  unsigned clients = 4;    ///< number of clients, each with one connection at a time
  unsigned requests = 40;  ///< number of requests of each client
  double cancel_share =
      0.01;  ///< probability that a client cancels a request at each of its frames
  std::uint32_t window = 64 * 1024;  ///< window of each stream, in both directions
  bool drains = false;    ///< true: the server drains at a random time, and its clients stop then
  bool may_fail = false;  ///< true: the World injects faults, so that requests may fail
};

/// The clients send requests of each kind, cancel some, read slowly, and leave. The test requires
/// these rules:
/// - a response is whole and belongs to its request;
/// - without faults, each request of a client succeeds that the client does not cancel;
/// - a server that drains answers each request up to the stream of its last GOAWAY;
/// - a client that reads and cancels in moderation is neither refused nor rejected.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class Http2Scenario {
 public:
  Http2Scenario(sim::Random& random, const Http2ScenarioOptions& options) noexcept
      : random_(random), options_(options) {}

  const Http2ScenarioOptions& options() const noexcept { return options_; }
  /// The main function of the server.
  int serve(loop::Platform& host);
  /// The main function of the clients' core.
  Task<Result<>> ask(Scope& scope, Endpoint server);
  /// Tells the clients that the server drains.
  void on_drain() noexcept { draining_ = true; }

  /// Returns the first violation of a rule, or an empty text.
  const std::string& violation() const noexcept { return violation_; }
  std::size_t answered() const noexcept { return answered_; }
  std::size_t cancelled() const noexcept { return cancelled_; }
  /// Returns the number of requests that a drain has excluded.
  std::size_t excluded() const noexcept { return excluded_; }

 private:
  class Connection;

  Task<> send_requests(Endpoint server);
  void fail_with(const std::string& what);

  sim::Random& random_;
  Http2ScenarioOptions options_;
  std::size_t answered_ = 0;
  std::size_t cancelled_ = 0;
  std::size_t excluded_ = 0;
  bool draining_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
