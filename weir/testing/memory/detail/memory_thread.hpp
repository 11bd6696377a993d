// A thread that is none: the simulated host takes its steps when the clock comes to them.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/testing/memory_chance.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"

namespace weir {

/// Made by MemoryHost::make_thread(). Each step is an event of the clock's: between turns, in an
/// instant, which comes MemoryChance::step_time() late. Threads: one for everything.
class MemoryThread final : public HostThread {
 public:
  /// Of one host.
  struct Count {
    std::size_t running = 0;
    std::size_t max = std::numeric_limits<std::size_t>::max();  ///< then starting fails: EAGAIN
  };
  MemoryThread(MemoryClock& clock, MemoryChance& chance, Count& count, ThreadWork& work) noexcept
      : clock_(clock), chance_(chance), count_(count), work_(work) {}
  MemoryThread(const MemoryThread&) = delete;
  MemoryThread& operator=(const MemoryThread&) = delete;
  ~MemoryThread() override;

  Result<> start() override;
  void wake() noexcept override;
  /// Nothing is known of what never takes time.
  Duration cpu_time() noexcept override { return {}; }
  os::ThreadState state() noexcept override { return os::ThreadState::unknown; }

 private:
  void step_at(Instant moment);
  void step();
  void end() noexcept;

  MemoryClock& clock_;
  MemoryChance& chance_;
  Count& count_;
  ThreadWork& work_;
  bool started_ = false;  // and not ended
  bool stepping_ = false;
  bool called_ = false;  // wake() was called inside the present step
  std::optional<MemoryClock::EventId> next_;
};

}  // namespace weir
