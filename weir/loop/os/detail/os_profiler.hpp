// Profiles of the loops that run on threads of OsPlatform.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
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

/// The threads of this process that OsPlatform has started and that run no loop, such as those of
/// pools.
/// Threads: any.
class OtherThreads {
 public:
  struct Entry {
    std::uint64_t number = 0;  ///< grows with each thread
    std::string name;
    os::SampledThread thread;
  };

  /// Lists the calling thread while the object lives, unless there is no memory for that.
  class Running {
   public:
    explicit Running(const std::string& name) noexcept;
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running();

   private:
    std::uint64_t number_ = 0;
  };

  /// Calls `use` for the threads with a higher number than `above`, in the order of their numbers,
  /// until it returns false. None of the threads ends meanwhile.
  static void each_above(std::uint64_t above, const std::function<bool(const Entry&)>& use);

 private:
  static OtherThreads& of_process();

  std::mutex mutex_;  // guards the members below
  std::uint64_t last_number_ = 0;
  std::vector<Entry> entries_;  // sorted by number
};

/// Implements PlatformProfiler::start_cpu_profile() for an operating system.
std::expected<std::unique_ptr<CpuProfile>, ProfileError> start_os_cpu_profile(
    std::span<Loop* const> loops, const CpuProfileOptions& options);

}  // namespace weir::loop
