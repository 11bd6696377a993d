// Turns that took too long, by what made them so: told once for each place, counted always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/turn_watch.hpp"

namespace weir {

/// What has made turns slow, on all cores of a runtime.
struct SlowPlace {
  std::string name;         ///< "GET /slow", "serve_client"
  std::uint64_t turns = 0;  ///< that took longer than Loop::slow_turn because of it
  Duration longest{};       ///< of these turns
};

/// Of all loops of a group. Threads: any; it is asked after slow turns only.
class SlowTurns {
 public:
  /// Beyond so many places, turns are counted under "others".
  static constexpr std::size_t places_max = 64;

  /// A turn was slow. The place's name if it is the first one there, to be told; else empty. To
  /// find it takes milliseconds, once.
  std::string add(const TurnPlace& place, Duration took);
  /// Most turns first, else by name.
  std::vector<SlowPlace> places() const;

 private:
  struct Known {
    TurnPlace place;
    SlowPlace seen;
  };
  Known* find(const TurnPlace& place);

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Known> known_;
};

}  // namespace weir
