// Peers that mean a server ill, by the hundred: what each of them does, and a herd of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/os/fd.hpp"

namespace weir::tests {

/// What one kind of attacker does with its connection.
struct Attack {
  enum class Then : std::uint8_t { stays, half_closes, resets };

  std::string_view name;
  std::string opening = {};  ///< is sent first, all of it
  std::string more = {};     ///< then this, again and again: as fast as it goes, or
  bool slowly = false;       ///< once in a while
  std::size_t takes = 1024;  ///< bytes of answers that it reads now and then
  Then then = Then::stays;   ///< once the opening has left
};

/// For the server of examples/limits.cpp: everything between silence and floods.
const std::vector<Attack>& every_attack();

/// Keeps `size` connections to 127.0.0.1:`port`, each an attacker of a kind that is drawn; whoever
/// is at its end, after some seconds at the latest, is followed by another. On a thread of its own,
/// from its beginning to stop().
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
