// The controller of a pool: a thread that samples the workers, adjusts their number and frees
// those that ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

// Sampling of the threads of a pool, which estimates how many of them run.

/// A SampledThread is a thread and its data from the previous sample.
struct SampledThread {
  loop::PlatformThread* thread = nullptr;
  /// True while the thread runs a job; the thread itself sets it. Outside a job it can only wait
  /// for the pool's lock. The lock's holder may be waiting for a CPU, so that wait does not count
  /// as blocked.
  std::atomic<bool> in_work{false};
  Duration cpu_time{};        // at the last sample
  unsigned idle_samples = 0;  // consecutive samples without use of a CPU
};

/// A PoolSampler reads the CPU clock of every thread, which is cheap. It reads the state, which
/// is expensive, of at most 32 threads in each sample. These are 16 of those whose clocks moved
/// since the last sample and 16 of the others, different ones each time. A few running threads
/// are thus found among many sleeping ones, and are not counted many times over.
///
/// A thread whose state is unavailable counts as blocked after eight samples without movement of
/// its clock. A shorter pause may only mean that it waits for a CPU that other programs use.
/// Threads: one at a time.
class PoolSampler {
 public:
  struct Estimate {
    double running = 0;
    SizeEvidence evidence = SizeEvidence::none;
  };
  /// Estimates how many of `threads` are on a CPU or wait for one.
  Estimate sample(std::span<SampledThread* const> threads);

 private:
  double running_among(std::span<SampledThread* const> threads);

  std::size_t samples_ = 0;
  bool states_known_ = false;
  std::vector<SampledThread*> active_;  // a member to reuse its memory
  std::vector<SampledThread*> idle_;
};

class PoolThreads;

/// A PoolController keeps a pool at its size. It sleeps unless work needs a new thread, an
/// automatic size keeps work waiting, a thread has ended, or the size has been set.
/// Threads: step(): its own thread.
class PoolController final : public loop::ThreadWork {
 public:
  explicit PoolController(PoolThreads& threads) noexcept : threads_(threads) {}
  std::optional<Instant> step() noexcept override;

  loop::PlatformThread* thread = nullptr;  ///< its own thread; set before the first step

 private:
  Instant run_step();
  /// Frees the threads that have ended.
  /// Returns: true if some of them must be freed later.
  bool free_ended_threads();
  Instant take_sample();

  PoolThreads& threads_;
  PoolSampler sampler_;
  std::vector<SampledThread*> sampled_;
  bool sampling_ = false;           // true after a first sample
  unsigned unchanged_samples_ = 0;  // consecutive samples that changed nothing
};

}  // namespace weir
