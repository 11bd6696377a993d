// The options of a World.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/base/time.hpp"

namespace weir::sim {

/// The random variation of a run, within the contracts of Backend, Platform and TCP. Rates are
/// from 0 (never) to 1 (always). The order in which cores take their turns is always random.
struct JitterOptions {
  double deferred = 0.3;   ///< operations that finish later although they could finish immediately
  double partial = 0.25;   ///< receives and sends that transfer only a part of the data
  double cancelled = 0.5;  ///< cancelled operations that do not finish although they could
  double skewed_accept = 0;  ///< connections that go to the first listener of a shared address
  double late_turn = 0.01;  ///< turns before which a core pauses, as if other programs used its CPU
  Duration late_turn_max = std::chrono::milliseconds(20);  ///< maximum duration of such a pause
  Duration delay_min = std::chrono::microseconds(20);  ///< minimum delay of traffic between hosts
  Duration delay_max = std::chrono::milliseconds(2);
  double slow_segment = 0.02;  ///< segments that take up to slow_segment_max
  Duration slow_segment_max = std::chrono::milliseconds(400);
  double split = 0.2;                   ///< segments that are split at a random byte
  std::size_t buffer_bytes_min = 2048;  ///< minimum for a connection; its host sets the maximum
  /// Maximum duration of a function in a blocking pool, or of an operation on a file.
  Duration step_max = std::chrono::milliseconds(5);
};

/// No variation: everything happens immediately, completely and in order. Segments still take
/// 100 microseconds.
inline constexpr JitterOptions no_jitter{
    .deferred = 0,
    .partial = 0,
    .cancelled = 0,
    .skewed_accept = 0,
    .late_turn = 0,
    .late_turn_max = {},
    .delay_min = std::chrono::microseconds(100),
    .delay_max = std::chrono::microseconds(100),
    .slow_segment = 0,
    .slow_segment_max = {},
    .split = 0,
    .buffer_bytes_min = 0,
    .step_max = {},
};

/// Returns a random seed.
std::uint64_t fresh_seed();

/// WorldOptions sets the seed of a World, its variation and its limits.
struct WorldOptions {
  std::uint64_t seed = fresh_seed();
  JitterOptions jitter = {};
  bool trace = false;  ///< true if the run keeps the text of World::trace()
  /// The command that runs this test again; the seed is appended: "./dev simulate --seed ".
  std::string replay = "setting WorldOptions::seed to ";
  /// The maximum number of steps at one moment: turns of cores, and Runnables that run in them.
  /// The World aborts a run that exceeds it. The tasks of such a run yield again and again,
  /// instead of waiting for time to pass.
  std::uint64_t steps_per_instant_max = 10'000'000;
  /// The maximum sleep of a function in a blocking pool, in real time; see BlockingCallDetector.
  Duration blocked_max = std::chrono::seconds(20);
};

}  // namespace weir::sim
