// Profiles of the loops that run on threads of OsPlatform.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "weir/loop/contract/detail/profiler.hpp"
#include "weir/os/detail/process/cpu_sampler.hpp"

namespace weir::loop {

/// The threads that run the loops of a group, for profiles. It is stored in the slots of the group.
/// Threads: any.
class LoopThreadTable {
 public:
  /// Makes the calling thread the thread of `loop` while the object lives. Without memory for that,
  /// the loop has no thread here and cannot be profiled.
  class Running {
   public:
    explicit Running(Loop& loop) noexcept;
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running();

   private:
    const Loop& loop_;
    LoopThreadTable* table_ = nullptr;
  };

  /// Returns the thread that runs `loop`, if any.
  static std::optional<os::SampledThread> thread_of(Loop& loop);

 private:
  struct Entry {
    const Loop* loop;
    os::SampledThread thread;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
};

/// Implements PlatformProfiler::start_cpu_profile() for an operating system.
std::expected<std::unique_ptr<CpuProfile>, ProfileError> start_os_cpu_profile(
    std::span<Loop* const> loops, const CpuProfileOptions& options);

}  // namespace weir::loop
