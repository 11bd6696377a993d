// Simulates clients that stay within every limit of a server, while others overload it.
#pragma once

#include <cstddef>
#include <string>

#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

struct RegularClientsOptions {
  Endpoint server = {};
  std::size_t connections = 3;
};

/// Each client opens one connection in the first half second and sends the requests of
/// sim::HttpRequest on it. The test requires that every response is correct and arrives soon, and
/// that the connection stays open.
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

  RegularClientsOptions options_;
  std::string violation_;
  std::size_t answered_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::simulate
