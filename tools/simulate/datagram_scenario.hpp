// Simulates a service and a client that exchange datagrams, some of them lost or duplicated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// Runs one core of the service, which answers each datagram until the loop drains. The service
/// receives at most 1000 bytes of a datagram.
Task<Result<>> echo_datagrams(Scope& scope, Endpoint endpoint);

/// Returns the answer of the service: the received bytes, and the number of bytes that are cut off.
std::string answer_to_datagram(std::string_view question);

/// The client sends each request again until it is answered. A request begins with its number and
/// may be too long for the service. The test requires that each response is the answer to a
/// request.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class DatagramScenario {
 public:
  Task<> run(Scope& scope, Endpoint server);
  std::string find_violation() const;
  std::size_t answered() const noexcept { return answered_; }

 private:
  std::vector<std::string> right_;  // answers by the number of the request
  std::size_t answered_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
