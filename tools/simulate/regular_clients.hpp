// Clients that stay within every limit of a server, whatever others do to it.
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

/// Each has one connection, from the first half of a second on, and asks on it again and again for
/// what HttpAsked names. What must hold: every answer comes soon, is right, and the connection
/// stays.
/// Threads: those of one World. Lifetime: outlives what run() spawns.
class RegularClients {
 public:
  explicit RegularClients(const RegularClientsOptions& options) : options_(options) {}

  /// The body of a client. Cancel: closes its connections.
  Task<> run(Scope& scope);
  /// They have asked enough.
  void stop() noexcept { stopping_ = true; }
  /// What did not hold; empty if all did.
  const std::string& fault() const noexcept { return fault_; }
  std::size_t answered() const noexcept { return answered_; }

 private:
  Task<> ask_often(Scope& scope);

  RegularClientsOptions options_;
  std::string fault_;
  std::size_t answered_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::simulate
