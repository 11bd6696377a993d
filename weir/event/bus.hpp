// An EventBus passes typed events between the parts of a program, on every core of a runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "weir/event/core_events.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// EventBusOptions limits the queued events of an EventBus.
struct EventBusOptions {
  /// The maximum number of events from the core itself that wait on a core, and also the maximum
  /// number from all other cores together. Publishing fails with Errc::limit_reached if a queue is
  /// full.
  std::size_t capacity = std::size_t{1} << 20;
};

/// An EventBus has a CoreEvents for each core, which only that core uses. The bus has no thread of
/// its own and takes no lock.
///
///     EventBus bus(runtime.core_count());
///     // on each core:
///     CoreEvents& events = bus.local(scope.loop());
///     auto registration = events.on([](const Joined& event) { … });
///     auto published = events.publish_to_all(Joined("Ann"));
///
/// One EventBus serves one run of the loops. The destructor destroys events that are not handled.
///
/// Threads: any for make_source(), counters() and core_count(); a core's for the other functions.
/// Lifetime: outlives the run of its loops. The bus may be destroyed earlier if stop() has
/// returned and no task publishes any more.
class EventBus {
 public:
  /// Makes a bus for loops whose core() is less than `cores`, usually Runtime::core_count().
  explicit EventBus(std::size_t cores, const EventBusOptions& options = {});
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;

  /// Returns the events of the core on which the caller runs; `loop` is that core's loop.
  CoreEvents& local(Loop& loop) noexcept;

  /// Returns a source that is unique in this bus. A bus numbers its sources from 1 and can make
  /// 2^46 - 1 of them.
  EventSource make_source() noexcept;

  std::size_t core_count() const noexcept { return cores_.size(); }
  const EventCounters& counters(std::size_t core) const noexcept;

  /// Stops all cores; a task on one of the bus's loops calls it. Every core then rejects new
  /// events with Errc::closed. The returned task finishes when all cores have handled all
  /// published events and have freed the memory of their queues. Tasks of handlers continue in
  /// their scopes. A second call has no effect.
  /// Cancel: ignored; handlers are short, and stop() does not wait for the tasks of handlers.
  Task<> stop();

 private:
  friend class CoreEvents;
  // Two cache lines of 64 bytes, because processors fetch lines in pairs.
  struct alignas(128) Core {
    Core(EventBus& bus, unsigned core, std::size_t capacity) : events(bus, core, capacity) {}
    CoreEvents events;
  };

  CoreEvents& events(std::size_t core) noexcept { return cores_[core].events; }
  static void close(CoreEvents& events) noexcept { events.close(); }
  static Task<> finish(CoreEvents& events);

  std::deque<Core> cores_;
  std::atomic<std::uint64_t> sources_{0};
};

}  // namespace weir
