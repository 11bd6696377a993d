#include "tools/simulate/event_scenario.hpp"

#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

constexpr unsigned events_each = 60;

Duration moment(Host& host) {
  return std::chrono::microseconds(host.random() % 3000);
}

}  // namespace

Task<> EventPlay::run(Scope& scope) {
  Events& events = bus_.local(scope.loop());
  Host& host = scope.loop().host();
  const auto small = events.on([&](const Note& note) {
    ++small_;
    hear(events, host, note);
  });
  const auto large = events.on([&](const LargeNote& note) { hear(events, host, note); });
  const auto waiting = events.on(scope, [&](Note) { return take_note(host); });
  scope.spawn(publish_some(events, host));
  scope.spawn(come_and_go(events, host));
  if (events.core() == 0) scope.spawn(stop(host));
  while (!stopped_) static_cast<void>(co_await sleep(std::chrono::milliseconds(1)));
}

/// To this core, another one or all.
template <class T>
Result<> EventPlay::publish(Events& events, Host& host) {
  T note;
  note.publisher = events.core();
  note.number = ++last_;
  note.priority = static_cast<EventPriority>(host.random() % event_priorities);
  const auto cores = static_cast<unsigned>(bus_.core_count());
  const bool to_all = host.random() % 4 == 0;
  const auto core = static_cast<unsigned>(host.random() % cores);
  const EventOptions options{.priority = note.priority};
  const Result<> published =
      to_all ? events.publish_to_all(note, options) : events.publish_on(core, note, options);
  if (!published) return published;
  for (unsigned to = 0; to < cores; ++to) {
    if (!to_all && to != core) continue;
    published_[{note.publisher, to, note.priority}].push_back(note.number);
  }
  return {};
}

Task<> EventPlay::publish_some(Events& events, Host& host) {
  for (unsigned count = 0; count < events_each; ++count) {
    const bool large = host.random() % 3 == 0;
    const auto published = large ? publish<LargeNote>(events, host) : publish<Note>(events, host);
    if (!published && published.error() == Errc::closed) co_return;
    if (!published && published.error() != Errc::limit_reached) {
      fault_ = "an event was refused: " + published.error().message();
    }
    if (host.random() % 3 == 0) static_cast<void>(co_await sleep(moment(host)));
  }
}

void EventPlay::hear(Events& events, Host& host, const Note& note) {
  ++done_;
  heard_[{note.publisher, events.core(), note.priority}].push_back(note.number);
  if (stopped_) fault_ = "an event comes after the bus has stopped";
  // Not so often that it would never end.
  if (host.random() % 8 == 0) static_cast<void>(publish<LargeNote>(events, host));
}

Task<> EventPlay::take_note(Host& host) {
  ++begun_;
  static_cast<void>(co_await sleep(moment(host)));
}

/// Somebody who listens for a while, again and again.
Task<> EventPlay::come_and_go(Events& events, Host& host) {
  while (!stopped_) {
    bool listens = true;
    auto registration = events.on([&](const Note&) {
      if (!listens) fault_ = "somebody is told who has gone";
    });
    static_cast<void>(co_await sleep(moment(host)));
    registration.end();
    listens = false;
    static_cast<void>(co_await sleep(moment(host)));
  }
}

/// While some still publish, or when all have.
Task<> EventPlay::stop(Host& host) {
  static_cast<void>(co_await sleep((1 + host.random() % 60) * moment(host)));
  co_await bus_.stop();
  compare("as the bus has stopped");
  stopped_ = true;
}

void EventPlay::compare(std::string_view when) {
  if (heard_ != published_) fault_ = "not all that was published was handled " + std::string(when);
}

std::string EventPlay::find_fault() const {
  if (!fault_.empty()) return fault_;
  if (!stopped_) return "the bus has not stopped";
  return begun_ == small_ ? "" : "a handler that waits has not begun once for each event";
}

}  // namespace weir::simulate
