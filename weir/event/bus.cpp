#include "weir/event/bus.hpp"

#include <cassert>
#include <functional>
#include <utility>

#include "weir/runtime/on_core.hpp"
#include "weir/task/sleep.hpp"

namespace weir {

EventBus::EventBus(std::size_t cores, const EventBusOptions& options) {
  for (std::size_t core = 0; core < cores; ++core) {
    cores_.emplace_back(*this, static_cast<unsigned>(core), options.queued_max);
  }
}

Events& EventBus::local(Loop& loop) noexcept {
  assert(loop.core() < cores_.size());
  Events& events = cores_[loop.core()].events;
  events.bind(loop);
  return events;
}

EventSource EventBus::make_source() noexcept {
  // relaxed: only that it differs from all others matters.
  return EventSource(sources_.fetch_add(1, std::memory_order_relaxed) + 1);
}

const EventCounters& EventBus::counters(std::size_t core) const noexcept {
  assert(core < cores_.size());
  return cores_[core].events.counters();
}

Task<> EventBus::stop() {
  const auto count = static_cast<unsigned>(core_count());
  // Once each core has been visited, nobody publishes any more, and all bells have been posted.
  for (unsigned core = 0; core < count; ++core) {
    co_await on_core(core, &EventBus::close, std::ref(events(core)));
  }
  for (unsigned core = 0; core < count; ++core) {
    co_await on_core(core, &EventBus::finish, std::ref(events(core)));
  }
}

/// On their core.
Task<> EventBus::finish(Events& events) {
  // A turn at a time. Cancelled or not: what was published is handled soon; but under a cancelled
  // context a sleep is over at once, and nothing would ever be.
  const Context shield{(co_await this_context()).loop, nullptr};
  while (events.busy()) {
    auto turn = in_context(shield, as_task(sleep(Duration())));
    static_cast<void>(co_await std::move(turn));
  }
  events.give_back();
}

}  // namespace weir
