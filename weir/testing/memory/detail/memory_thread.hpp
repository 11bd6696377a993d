// A simulated thread: the clock of the platform runs its steps.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {

/// A MemoryThread runs the steps of a ThreadWork as events of the clock.
/// MemoryPlatform::make_thread() creates it. A step runs between turns and takes no time. It
/// starts Nondeterminism::step_delay() late.
/// Threads: one for everything.
class MemoryThread final : public loop::PlatformThread {
 public:
  /// The threads of one platform.
  struct Count {
    std::size_t running = 0;
    /// Limit; more threads fail to start with EAGAIN.
    std::size_t max = std::numeric_limits<std::size_t>::max();
  };
  MemoryThread(MemoryClock& clock, Nondeterminism& nondeterminism, Count& count,
               loop::ThreadWork& work) noexcept
      : clock_(clock), nondeterminism_(nondeterminism), count_(count), work_(work) {}
  MemoryThread(const MemoryThread&) = delete;
  MemoryThread& operator=(const MemoryThread&) = delete;
  ~MemoryThread() override;

  Result<> start() override;
  void wake() noexcept override;
  /// Returns 0, because simulated steps take no time.
  Duration cpu_time() noexcept override { return {}; }
  os::ThreadState state() noexcept override { return os::ThreadState::unknown; }

 private:
  void step_at(Instant moment);
  void step();
  void end() noexcept;

  MemoryClock& clock_;
  Nondeterminism& nondeterminism_;
  Count& count_;
  loop::ThreadWork& work_;
  bool started_ = false;  // true from start() until its end
  bool stepping_ = false;
  bool wake_pending_ = false;  // true if wake() was called in the current step
  std::optional<MemoryClock::EventId> next_;
};

}  // namespace weir
