// Makes and stops the event queues of all cores.
#include "weir/event/bus.hpp"

#include <cassert>
#include <functional>
#include <utility>

#include "weir/runtime/on_core.hpp"
#include "weir/task/sleep.hpp"

namespace weir {

EventBus::EventBus(std::size_t cores, const EventBusOptions& options) {
  for (std::size_t core = 0; core < cores; ++core) {
    cores_.emplace_back(*this, static_cast<unsigned>(core), options.capacity);
  }
}

CoreEvents& EventBus::local(Loop& loop) noexcept {
  assert(loop.core() < cores_.size());
  CoreEvents& events = cores_[loop.core()].events;
  events.bind(loop);
  return events;
}

EventSource EventBus::make_source() noexcept {
  // relaxed: only uniqueness matters.
  return EventSource(sources_.fetch_add(1, std::memory_order_relaxed) + 1);
}

const EventCounters& EventBus::counters(std::size_t core) const noexcept {
  assert(core < cores_.size());
  return cores_[core].events.counters();
}

Task<> EventBus::stop() {
  const auto count = static_cast<unsigned>(core_count());
  // All cores reject new events after this loop, and all wake-ups have been posted.
  for (unsigned core = 0; core < count; ++core) {
    co_await on_core(core, &EventBus::close, std::ref(events(core)));
  }
  for (unsigned core = 0; core < count; ++core) {
    co_await on_core(core, &EventBus::finish, std::ref(events(core)));
  }
}

/// Runs on the core of `events`.
Task<> EventBus::finish(CoreEvents& events) {
  // Waits one turn at a time until the published events are handled, which is soon. A cancelled
  // context would end each sleep immediately, so the loop would never get a turn.
  const Context shield{(co_await this_context()).loop, nullptr};
  while (events.is_busy()) {
    auto turn = in_context(shield, as_task(sleep(Duration())));
    std::ignore = co_await std::move(turn);
  }
  events.release_memory();
}

}  // namespace weir
