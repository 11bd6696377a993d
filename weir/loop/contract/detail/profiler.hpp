// Contract of a platform that can tell where the loops of a runtime spend their CPU time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/os/detail/process/symbolizer.hpp"

namespace weir {
class Loop;
class TraceContext;
}  // namespace weir

namespace weir::loop {

/// One interrupted stack of the thread of a loop, or of another thread of the platform.
struct CpuSample {
  static constexpr std::size_t no_core = std::numeric_limits<std::size_t>::max();

  std::size_t thread = 0;             ///< as in LabelReader::read()
  std::size_t core = 0;               ///< index of the loop; no_core for another thread
  std::string_view thread_name = {};  ///< of another thread: "weir-pool". Valid during the call
  std::uint64_t weight = 0;           ///< periods of CPU time since the last sample
  /// The function that the loop runs: a callback, or the resume function of a coroutine. 0 if the
  /// loop runs none.
  std::uintptr_t activity = 0;
  std::uintptr_t label = 0;  ///< from LabelReader::read()
  /// Addresses of instructions, the innermost function first. All but the first are return
  /// addresses.
  std::span<const std::uintptr_t> frames = {};
};

/// Makes labels of samples from the trace context for which a thread works.
class LabelReader {
 public:
  /// Returns the label of the present work; 0: none. The trace context may have been destroyed, so
  /// the function copies it by os::copy_own_memory() and checks the copy. `thread` is the index of
  /// the loop, or a higher number for another thread.
  /// Threads: the sampled thread, in a signal handler: it allocates nothing and takes no lock.
  virtual std::uintptr_t read(std::size_t thread, const TraceContext* trace) noexcept = 0;

 protected:
  ~LabelReader() = default;
};

struct CpuProfileOptions {
  /// The number of threads without a loop that a profile samples, such as those of pools.
  static constexpr std::size_t other_threads_max = 128;

  unsigned hertz = 99;            ///< samples for each second of CPU time of a thread
  LabelReader* labels = nullptr;  ///< outlives the profile; nullptr: no labels
};

/// A profile that takes samples until stop() or its destructor.
/// Threads: one at a time.
/// Lifetime: the loops outlive it.
class CpuProfile {
 public:
  virtual ~CpuProfile() = default;
  /// Calls `use` for samples since the last call, at most `most` of them. A sample is lost if the
  /// memory of its thread is full, so the caller drains all samples every second.
  /// Returns: true if samples may be left.
  virtual bool drain(std::size_t most, const std::function<void(const CpuSample&)>& use) = 0;
  /// Ends the samples. It may wait for some microseconds for a signal handler.
  virtual void stop() noexcept = 0;
  /// Returns the number of lost samples.
  virtual std::uint64_t dropped() const noexcept = 0;
};

/// The error of a profile that did not start.
struct ProfileError {
  std::error_code code;
  std::string reason;  ///< for a reader
};

/// The part of a platform that takes profiles. A platform that supports them is derived from it.
/// Threads: all functions from any thread.
class PlatformProfiler {
 public:
  /// Starts a profile of the threads that run `loops`, and of the other threads of the platform,
  /// which run the jobs of pools. A thread that starts later is sampled from the next drain on.
  /// Errors: Errc::conflict if a profile runs in this process already. EAGAIN if a loop has not
  /// begun yet, or has ended. Errc::unsupported if a thread of a loop blocks SIGPROF. Those of the
  /// kernel.
  virtual std::expected<std::unique_ptr<CpuProfile>, ProfileError> start_cpu_profile(
      std::span<Loop* const> loops, const CpuProfileOptions& options) = 0;
  /// Returns the functions of the addresses; see os::symbolize().
  virtual os::Symbols symbolize(std::span<const std::uintptr_t> addresses) {
    return os::symbolize(addresses);
  }

 protected:
  ~PlatformProfiler() = default;
};

}  // namespace weir::loop
