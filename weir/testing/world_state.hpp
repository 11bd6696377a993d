// What a World is made with, and what all its parts share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/sim/faults.hpp"
#include "weir/testing/world_trace.hpp"
#include "weir/testing/world_variation.hpp"
#include "weir/testing/world_watch.hpp"

namespace weir {

/// A seed that nobody has tried before, as far as one can tell.
std::uint64_t fresh_seed();

/// What `function` throws, in words; nullopt: nothing.
std::optional<std::string> thrown_by(const std::function<void()>& function);

struct WorldOptions {
  std::uint64_t seed = fresh_seed();
  WorldVariation variation = {};
  bool trace = false;  ///< keeps what World::trace() gives
  /// How to run this test again, to which the seed is added: "./dev simulate --seed ".
  std::string replay = "setting WorldOptions::seed to ";
  /// So many turns of cores, and things that run in them, there may be at one moment; beyond, the
  /// run is given up: somebody waits for what takes time by letting others run again and again.
  std::uint64_t steps_at_once_max = 10'000'000;
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
