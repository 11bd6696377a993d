// Simulates clients that open a new connection for each visit.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/router/router.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// Adds the resource that the clients request. `GET /who/{id}/{ms}` is answered with "who
/// {process} {id}\n" after `ms` milliseconds.
void add_process_id_route(http::Router& routes, std::size_t process);

struct OneShotClientsOptions {
  Endpoint server = {};
  std::size_t count = 6;  ///< clients at the same time
};

/// One connection and its result.
struct OneShotConnection {
  Instant begun{};
  Instant ended{};
  Endpoint local = {};  ///< address of this side, once connected
  std::string violation = {};
  /// The process that announced a close before it had answered all requests (the violation).
  std::optional<std::size_t> closed_by = {};
};

/// Each client opens connections one after the other. The test requires these rules for each
/// connection:
/// - the client connects;
/// - the first request is answered, and so are the others; a process that drains may close after a
///   response that announces the close, see OneShotConnection::closed_by;
/// - all responses are correct and come from one process.
/// Threads: those of one World.
/// Lifetime: outlives the tasks that run() spawns.
class OneShotClients {
 public:
  explicit OneShotClients(const OneShotClientsOptions& options) : options_(options) {}

  /// Runs the clients.
  /// Cancel: closes their connections.
  Task<> run(Scope& scope);
  /// Stops new connections.
  void stop() noexcept { stopping_ = true; }
  /// Describes the first connection that failed and is not tolerated; empty if none.
  std::string find_violation(
      const std::function<bool(const OneShotConnection&)>& is_tolerated) const;
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of responses of processes other than the first one.
  std::size_t answered_by_newer() const noexcept { return answered_by_newer_; }

 private:
  Task<> run_client(Scope& scope);
  Task<> run_connection(OneShotConnection& connection, sim::Random& random);
  std::string judge(OneShotConnection& connection, std::string_view received, std::size_t requests);

  OneShotClientsOptions options_;
  std::deque<OneShotConnection> connections_;
  std::size_t answered_ = 0;
  std::size_t answered_by_newer_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::simulate
