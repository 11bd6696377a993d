// Simulates a service and a client that exchange datagrams, some of them lost or duplicated.
#pragma once

#include <cstddef>
#include <string>

#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// Runs one core of the service, which sends each datagram back until the loop drains.
Task<Result<>> echo_datagrams(Scope& scope, Endpoint endpoint);

/// The client sends each request again until it is answered. The test requires that each response
/// belongs to a request.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class DatagramScenario {
 public:
  Task<> run(Scope& scope, Endpoint server);
  std::string find_violation() const;
  std::size_t answered() const noexcept { return answered_; }

 private:
  std::size_t answered_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
