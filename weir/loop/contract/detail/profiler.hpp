// Contract of a platform that can tell where the loops of a runtime spend their CPU time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "weir/os/detail/process/symbolizer.hpp"

namespace weir {
class Loop;
class TraceContext;
}  // namespace weir

namespace weir::loop {

/// One interrupted stack of the thread of a loop.
struct CpuSample {
  std::size_t core = 0;      ///< index of the loop
  std::uint64_t weight = 0;  ///< periods of CPU time since the last sample
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
  /// the function copies it by os::copy_own_memory() and checks the copy.
  /// Threads: the thread of the loop, in a signal handler: it allocates nothing and takes no lock.
  virtual std::uintptr_t read(std::size_t core, const TraceContext* trace) noexcept = 0;

 protected:
  ~LabelReader() = default;
};

struct CpuProfileOptions {
  unsigned hertz = 99;            ///< samples for each second of CPU time of a loop
  LabelReader* labels = nullptr;  ///< outlives the profile; nullptr: no labels
};

/// A profile that takes samples until stop() or its destructor.
/// Threads: one at a time.
/// Lifetime: the loops outlive it.
class CpuProfile {
 public:
  virtual ~CpuProfile() = default;
  /// Calls `use` for each sample since the last call. A sample is lost if the memory of its loop is
  /// full, so the caller drains several times a second.
  virtual void drain(const std::function<void(const CpuSample&)>& use) = 0;
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
  /// Starts a profile of the threads that run `loops`.
  /// Errors: Errc::conflict if a profile runs in this process already. Errc::unsupported if a loop
  /// does not run on a thread of this platform. Those of the kernel.
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
