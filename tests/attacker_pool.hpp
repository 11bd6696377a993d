// Peers that mean a server ill, by the hundred: what each of them does, and a herd of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "weir/os/detail/io/fd.hpp"
#include "weir/testing/http_attacks.hpp"

namespace weir::tests {

/// Keeps `size` connections to 127.0.0.1:`port`, each an attacker of a kind (HttpAttack) that is
/// drawn; whoever is at its end, after some seconds at the latest, is followed by another. On a
/// thread of its own, from its beginning to stop().
class Herd {
 public:
  Herd(std::uint16_t port, std::size_t size, std::uint32_t seed);
  ~Herd() { stop(); }
  Herd(const Herd&) = delete;
  Herd& operator=(const Herd&) = delete;

  /// Connections that the server has ended.
  std::size_t ended() const { return ended_; }
  /// Resets all that is left.
  void stop();

 private:
  class Attacker;

  void run(std::size_t size);
  Attacker next();

  std::uint16_t port_;
  std::minstd_rand random_;
  std::atomic<std::size_t> ended_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weir::tests
