// Events between cores, and the rules for them.
#include "tools/simulate/event_scenario.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

constexpr unsigned events_each = 60;

Duration moment(loop::PlatformClock& clock) {
  return std::chrono::microseconds(clock.random() % 3000);
}

}  // namespace

Task<> EventScenario::run(Scope& scope) {
  CoreEvents& events = bus_.local(scope.loop());
  loop::PlatformClock& clock = scope.loop().platform();
  const auto small = events.on([&](const SmallEvent& event) {
    ++small_[events.core()];
    on_event(events, clock, event);
  });
  const auto large = events.on([&](const LargeEvent& event) { on_event(events, clock, event); });
  const auto waiting = events.on(scope, [&](SmallEvent) { return take_event(clock); });
  scope.spawn(publish_some(events, clock));
  scope.spawn(subscribe_briefly(events, clock));
  if (events.core() == 0) scope.spawn(stop(clock));
  while (!stopped_) std::ignore = co_await sleep(std::chrono::milliseconds(1));
}

/// Publishes to one core, which may be this one, or to all cores.
template <class T>
Result<> EventScenario::publish(CoreEvents& events, loop::PlatformClock& clock) {
  T event;
  event.publisher = events.core();
  event.number = ++last_;
  event.priority = static_cast<EventPriority>(clock.random() % event_priority_count);
  const auto cores = static_cast<unsigned>(bus_.core_count());
  const bool to_all = clock.random() % 4 == 0;
  const auto core = static_cast<unsigned>(clock.random() % cores);
  const EventOptions options{.priority = event.priority};
  const Result<> published =
      to_all ? events.publish_to_all(event, options) : events.publish_on(core, event, options);
  std::size_t most = 0;
  for (unsigned to = 0; to < cores; ++to) {
    if (!to_all && to != core) continue;
    if (published) published_[{event.publisher, to, event.priority}].push_back(event.number);
    most = std::max(most, waiting_on(to, to == event.publisher));
  }
  if (published && most > queue_capacity) violation_ = "a queue holds more than its capacity";
  if (!published && published.error() == Errc::limit_reached && most < queue_capacity) {
    violation_ = "an event was rejected although no queue was full";
  }
  return published;
}

std::size_t EventScenario::waiting_on(unsigned to, bool own) const {
  const auto count = [&](const Numbers& numbers) {
    std::size_t all = 0;
    for (const auto& [route, events] : numbers) {
      const unsigned publisher = std::get<0>(route);
      if (std::get<1>(route) == to && (publisher == to) == own) all += events.size();
    }
    return all;
  };
  return count(published_) - count(handled_);
}

/// Publishes events, with so few pauses on some cores that their queues become full.
Task<> EventScenario::publish_some(CoreEvents& events, loop::PlatformClock& clock) {
  const unsigned pause_one_in = clock.random() % 2 == 0 ? 3 : 30;
  for (unsigned count = 0; count < events_each; ++count) {
    const bool large = clock.random() % 3 == 0;
    const auto published =
        large ? publish<LargeEvent>(events, clock) : publish<SmallEvent>(events, clock);
    if (!published && published.error() == Errc::closed) co_return;
    if (!published && published.error() != Errc::limit_reached) {
      violation_ = "an event was rejected: " + published.error().message();
    }
    if (clock.random() % pause_one_in == 0) std::ignore = co_await sleep(moment(clock));
  }
}

void EventScenario::on_event(CoreEvents& events, loop::PlatformClock& clock,
                             const SmallEvent& event) {
  ++handled_count_;
  handled_[{event.publisher, events.core(), event.priority}].push_back(event.number);
  if (stopped_) violation_ = "an event was handled after the bus has stopped";
  // Publishes rarely enough that the scenario ends.
  if (clock.random() % 8 == 0) static_cast<void>(publish<LargeEvent>(events, clock));
}

Task<> EventScenario::take_event(loop::PlatformClock& clock) {
  ++started_;
  std::ignore = co_await sleep(moment(clock));
}

/// Subscribes for a short time, again and again.
Task<> EventScenario::subscribe_briefly(CoreEvents& events, loop::PlatformClock& clock) {
  const std::size_t& small = small_[events.core()];
  while (!stopped_) {
    bool listens = true;
    const std::size_t before = small;
    std::size_t calls = 0;
    auto registration = events.on([&](const SmallEvent&) {
      ++calls;
      if (!listens) violation_ = "a handler was called after its registration has ended";
    });
    std::ignore = co_await sleep(moment(clock));
    if (calls != small - before) violation_ = "a handler did not get each event";
    registration.end();
    listens = false;
    std::ignore = co_await sleep(moment(clock));
  }
}

/// Stops the bus, either while cores still publish or after all of them are done.
Task<> EventScenario::stop(loop::PlatformClock& clock) {
  std::ignore = co_await sleep((1 + clock.random() % 60) * moment(clock));
  co_await bus_.stop();
  compare("when the bus stopped");
  stopped_ = true;
}

void EventScenario::compare(std::string_view when) {
  if (handled_ != published_)
    violation_ = "published and handled events differ " + std::string(when);
}

std::string EventScenario::find_violation() const {
  if (!violation_.empty()) return violation_;
  if (!stopped_) return "the bus has not stopped";
  if (handled_ != published_) return "a stopped bus has taken an event";
  const std::size_t small = std::accumulate(small_.begin(), small_.end(), std::size_t{0});
  return started_ == small ? "" : "a waiting handler did not start exactly once per event";
}

}  // namespace weir::simulate
