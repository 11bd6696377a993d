// An AttackerPool runs hundreds of connections that attack a server in different ways.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "weir/http_testing/detail/http_attacks.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::tests {

/// Keeps `size` connections to 127.0.0.1:`port` on a thread of its own until stop(). Each
/// connection is an attacker of a randomly chosen kind (sim::HttpAttack). An attacker lives for
/// at most 3 seconds, and a new one replaces it.
class AttackerPool {
 public:
  AttackerPool(std::uint16_t port, std::size_t size, std::uint32_t seed);
  ~AttackerPool() { stop(); }
  AttackerPool(const AttackerPool&) = delete;
  AttackerPool& operator=(const AttackerPool&) = delete;

  /// Connections that the server has ended.
  std::size_t ended() const { return ended_; }
  /// Stops the thread and resets the remaining connections.
  void stop();

 private:
  class Attacker;

  void run(std::size_t size);
  Attacker make_attacker();

  std::uint16_t port_;
  std::minstd_rand random_;
  std::atomic<std::size_t> ended_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weir::tests
