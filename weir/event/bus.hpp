// Typed events between the parts of a program, on every core of a runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "weir/event/detail/core_events.hpp"
#include "weir/task/task.hpp"

namespace weir {

struct EventBusOptions {
  /// Events that wait on one core: so many that were published there, and as many from all other
  /// cores together. Beyond, publishing answers Errc::limit_reached.
  std::size_t queued_max = std::size_t{1} << 20;
};

/// The events of all cores; each core works with its own part. No thread is shared, no lock taken:
///
///   EventBus bus(runtime.core_count());
///   …on each core: Events& events = bus.local(scope.loop());
///   auto registration = events.on([](const Joined& event) { … });
///   auto published = events.publish_to_all(Joined("Ann"));
///
/// Threads: any for make_source() and counters(), a core's for the rest. Lifetime: longer than the
/// run of the loops it is used on, or until stop() has returned and nobody publishes any more; one
/// run for each bus. What nobody has handled is destroyed with it.
class EventBus {
 public:
  /// For loops whose core() is less than `cores`; Runtime::core_count() tells how many.
  explicit EventBus(std::size_t cores, const EventBusOptions& options = {});
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;

  /// The events of the core that the caller is on.
  Events& local(Loop& loop) noexcept;

  /// A source that differs from all others of this bus. There are 2^46 - 1.
  EventSource make_source() noexcept;

  std::size_t core_count() const noexcept { return cores_.size(); }
  const EventCounters& counters(std::size_t core) const noexcept;

  /// `co_await bus.stop()`, on one of its loops: from now on every core refuses what is published,
  /// with Errc::closed; returns when all that was published has been handled, on all cores, and
  /// the memory of their queues is given back. Runs of handlers that wait go on in their scopes.
  /// Stopping twice does nothing.
  /// Cancel: not affected; handlers that do not wait are not long.
  Task<> stop();

 private:
  friend class Events;
  // Twice a cache line of 64 bytes: processors fetch them in pairs.
  struct alignas(128) Core {
    Core(EventBus& bus, unsigned core, std::size_t queued_max) : events(bus, core, queued_max) {}
    Events events;
  };

  Events& events(std::size_t core) noexcept { return cores_[core].events; }
  static void close(Events& events) noexcept { events.close(); }
  static Task<> finish(Events& events);

  std::deque<Core> cores_;
  std::atomic<std::uint64_t> sources_{0};
};

}  // namespace weir
