// A service and its client that talk by datagrams, which get lost and doubled.
#pragma once

#include <cstddef>
#include <string>

#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// One core of the service: sends each datagram back, until it drains.
Task<Result<>> echo_datagrams(Scope& scope, Endpoint endpoint);

/// The client: asks again until it is answered. What must hold: an answer is one to what was asked.
/// Threads: those of one World. Lifetime: outlives the run.
class DatagramPlay {
 public:
  Task<> run(Scope& scope, Endpoint server);
  std::string find_fault() const;
  std::size_t answered() const noexcept { return answered_; }

 private:
  std::size_t answered_ = 0;
  std::string fault_;
};

}  // namespace weir::simulate
