// Samples the stacks of threads by timers of their CPU time.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/detail/process/sample_ring.hpp"
#include "weir/os/detail/process/stack_walk.hpp"

namespace weir::os {

/// A thread as a CpuSampler needs to know it.
struct SampledThread {
  /// Returns the calling thread. Its signal mask is that of this moment.
  static SampledThread of_this_thread() noexcept;

  pthread_t handle = {};
  int id = 0;  ///< gettid(2)
  clockid_t cpu_clock = {};
  StackBounds stack = {};
  bool blocks_signal = false;  ///< true if the thread blocks SIGPROF
};

/// Copies memory of this process that may be unmapped. It is a system call (process_vm_readv(2)),
/// so memory that cannot be read is an error and no crash.
/// Returns: true if all bytes were copied.
/// Threads: any, also in a signal handler.
bool copy_own_memory(const void* from, void* to, std::size_t size) noexcept;

/// A CpuSampler interrupts threads each time they have used some CPU time, and stores their stacks.
/// Its signal is SIGPROF. Signals of other timers and processes go to the handler that was there
/// before. The destructor stops the timers, discards pending signals and restores the former
/// action. A process has at most one CpuSampler.
///
/// The handler allocates nothing, takes no lock and preserves errno. It walks frame pointers and
/// never unwinds, so it may interrupt an exception, the loader or an allocation.
/// Threads: one at a time, except for the threads that are sampled.
class CpuSampler {
 public:
  static constexpr std::size_t threads_max = 1024;
  static constexpr std::size_t frames_max = 128;
  /// Words of the ring of each thread, 1 MiB: 10 seconds of the deepest stacks at 99 Hz.
  static constexpr std::size_t ring_words = std::size_t{1} << 17;

  /// The words that a hook adds to a sample.
  struct Facts {
    std::uintptr_t activity = 0;
    std::uintptr_t label = 0;
  };
  /// Is called in the signal handler, on the interrupted thread, with the index of the thread.
  using Hook = Facts (*)(void* context, std::size_t thread) noexcept;

  struct Options {
    unsigned hertz = 99;  ///< samples for each second of CPU time
    Hook hook = nullptr;  ///< nullptr: no facts
    void* hook_context = nullptr;
  };
  /// Errors: Errc::conflict if the process has a CpuSampler, Errc::unsupported if a thread blocks
  /// SIGPROF, Errc::limit_reached for too many threads; those of timer_create(2). Throws
  /// std::bad_alloc.
  static Result<std::unique_ptr<CpuSampler>> start(std::span<const SampledThread> threads,
                                                   const Options& options);
  /// Samples one more thread, which has the next index. It cannot end during the call.
  /// Errors: those of start(); nothing has changed then.
  Result<> add(const SampledThread& thread);
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;
  ~CpuSampler();

  /// One interrupted stack.
  struct Sample {
    std::size_t thread = 0;
    std::uint64_t weight = 0;  ///< periods of CPU time since the last sample
    Facts facts = {};
    std::span<const std::uintptr_t> frames = {};  ///< see walk_frames()
  };
  /// Calls `use(const Sample&)` for samples since the last call, one thread after the other. It
  /// stops after `most` samples, and the next call continues there.
  /// Returns: true if it has stopped.
  template <class Use>
  bool drain(std::size_t most, Use use) {
    for (; drained_ < threads_.size(); ++drained_) {
      most -= threads_[drained_]->ring.drain(most, [&](std::span<const std::uintptr_t> record) {
        use(Sample{drained_, record[0], {record[1], record[2]}, record.subspan(head_words)});
      });
      if (most == 0) return true;
    }
    drained_ = 0;
    return false;
  }
  /// Stops the timers, as the destructor does. drain() then returns the last samples.
  void stop() noexcept;
  /// Returns the number of samples that were dropped because drain() was not called in time.
  std::uint64_t dropped() const noexcept;

 private:
  static constexpr std::size_t head_words = 3;
  struct Thread {
    Thread(const SampledThread& of, std::size_t at, const Options& how)
        : thread(of), index(at), options(how), ring(ring_words) {}
    void take(std::uint64_t weight, const void* signal_context) noexcept;

    const SampledThread thread;
    const std::size_t index;
    const Options options;
    SampleRing ring;
    timer_t timer = {};
    bool has_timer = false;
  };
  friend struct SamplerSignal;

  CpuSampler() = default;
  Result<> start_timer(Thread& thread);
  void remove_last() noexcept;

  Options options_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t drained_ = 0;  // thread at which drain() continues
  bool running_ = false;
};

}  // namespace weir::os
