// What a World is made with, and what all its parts share.
#pragma once

#include <cstdint>
#include <string>

#include "weir/testing/memory_clock.hpp"
#include "weir/testing/world_draw.hpp"
#include "weir/testing/world_faults.hpp"
#include "weir/testing/world_trace.hpp"
#include "weir/testing/world_variation.hpp"
#include "weir/testing/world_watch.hpp"

namespace weir {

/// A seed that nobody has tried before, as far as one can tell.
std::uint64_t fresh_seed();

struct WorldOptions {
  std::uint64_t seed = fresh_seed();
  WorldVariation variation = {};
  bool trace = false;  ///< keeps what World::trace() gives
  /// The command that runs this test again, to which the seed is added: "./dev simulate --seed ".
  std::string replay = "World seed ";
  /// Of real time: how long a function in a blocking pool may sleep; see WorldWatch.
  Duration asleep_max = std::chrono::seconds(20);
};

/// Threads: one at a time.
struct WorldState {
  explicit WorldState(const WorldOptions& options)
      : draw(options.seed),
        variation(options.variation),
        trace(clock, options.trace),
        watch(options.asleep_max, options.replay + std::to_string(options.seed)) {}

  MemoryClock clock;
  WorldDraw draw;
  WorldVariation variation;
  WorldFaults faults;
  WorldTrace trace;
  WorldWatch watch;
};

}  // namespace weir
