#include "weir/event/detail/subscriber_table.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

#include "weir/app/event_tag.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"

namespace weir::detail {
namespace {

constexpr std::size_t slots_at_first = 16;
constexpr Duration failure_log_pause = std::chrono::seconds(1);

}  // namespace

void log_event_failure(Loop& loop, const EventType& type, std::error_code error,
                       const std::exception_ptr& thrown) {
  loop.host().log("weir: core " + std::to_string(loop.core()) + ": who was told of an event " +
                  std::string(type.name) + " failed: " + describe(error, thrown));
}

void EventReceiver::end() noexcept {
  if (std::exchange(ended_, true)) return;
  if (roster_ != nullptr) roster_->leave(*this);
}

EventRoster::EventRoster()
    : slots_(std::make_unique<Slot[]>(slots_at_first)), mask_(slots_at_first - 1) {}

EventRoster::~EventRoster() {
  assert(!still_ && "destroyed by a handler");
  dismiss(interceptors_);
  for (const auto& topic : topics_) {
    dismiss(topic->handlers);
    dismiss(topic->interceptors);
  }
  FigureSource::leave();
}

void EventRoster::bind(Loop& loop) {
  loop_ = &loop;
  loop.figures().add(*this);
}

/// Any thread: see FigureSource.
void EventRoster::tell(FigureSum& sum) const {
  sum.add({"events handled", counters_.handled.value()});
  sum.add({"events refused", counters_.refused.value()});
  sum.add({"event failures", counters_.failures.value()});
  sum.add({"event runs dropped", counters_.dropped.value()});
}

void EventRoster::dismiss(List<EventReceiver>& list) noexcept {
  while (EventReceiver* const receiver = list.pop_front()) {
    receiver->roster_ = nullptr;
    receiver->release();
  }
}

// ---- Topics -------------------------------------------------------------------------------------

std::size_t EventRoster::add_topic(const EventType& type) {
  const std::size_t index = topics_.size();
  if (index >> EventTag::topic_bits != 0) throw std::length_error("too many types of events");
  if (2 * (index + 1) > mask_ + 1) {
    const std::size_t slots = 2 * (mask_ + 1);
    slots_ = std::make_unique<Slot[]>(slots);
    mask_ = slots - 1;
    for (const auto& topic : topics_) place(topic->type, topic->index);
  }
  topics_.push_back(std::make_unique<EventTopic>(type, index));
  place(type, index);
  return index;
}

void EventRoster::place(const EventType& type, std::size_t topic) noexcept {
  std::size_t at = hash(type) & mask_;
  while (slots_[at].type != nullptr) at = (at + 1) & mask_;
  slots_[at] = {&type, topic};
}

// ---- Joining and leaving ------------------------------------------------------------------------

EventRegistration EventRoster::add(std::unique_ptr<EventHandler> handler, const EventType& type) {
  EventTopic& topic = *topics_[index_of(type)];
  return join(*handler.release(), topic.handlers);
}

EventRegistration EventRoster::add(std::unique_ptr<EventInterceptor> interceptor,
                                   const EventType* type) {
  auto& list = type == nullptr ? interceptors_ : topics_[index_of(*type)]->interceptors;
  return join(*interceptor.release(), list);
}

EventRegistration EventRoster::join(EventReceiver& receiver, List<EventReceiver>& list) noexcept {
  receiver.roster_ = this;
  receiver.list_ = &list;
  if (still_) {
    note_change(receiver);
  } else {
    list.push_back(receiver);
  }
  return EventRegistration(receiver);
}

void EventRoster::leave(EventReceiver& receiver) noexcept {
  if (receiver.changing_) return;  // settle() comes to it
  if (still_) return note_change(receiver);
  receiver.unlink();
  receiver.release();
}

void EventRoster::note_change(EventReceiver& receiver) noexcept {
  receiver.changing_ = true;
  (last_changed_ == nullptr ? first_changed_ : last_changed_->next_changed_) = &receiver;
  last_changed_ = &receiver;
}

void EventRoster::hold_still() noexcept {
  assert(!still_ && !changed());
  still_ = true;
}

void EventRoster::settle() noexcept {
  still_ = false;
  while (first_changed_ != nullptr) {
    EventReceiver& receiver = *first_changed_;
    first_changed_ = std::exchange(receiver.next_changed_, nullptr);
    if (first_changed_ == nullptr) last_changed_ = nullptr;
    receiver.changing_ = false;
    if (!receiver.ended()) {
      receiver.list_->push_back(receiver);
    } else {
      receiver.unlink();
      receiver.release();
    }
  }
}

// ---- Telling ------------------------------------------------------------------------------------

std::size_t EventRoster::call_handlers(const EventTopic& topic, EventSource source,
                                       const void* value) {
  std::size_t called = 0;
  const auto& handlers = topic.handlers;
  for (EventReceiver* each = handlers.front(); each != nullptr; each = handlers.next(*each)) {
    auto& handler = static_cast<EventHandler&>(*each);
    if (!handler.takes(source)) continue;
    ++called;
    try {
      handler.handle(value);
    } catch (...) {
      failed(topic.type, {}, std::current_exception());
    }
  }
  return called;
}

void EventRoster::tell_intercepted(const EventTopic& topic, const EventOptions& options,
                                   const void* value) {
  const AnyEvent event(topic, value, options);
  EventOutcome outcome;
  outcome.vetoed = vetoed(interceptors_, topic, event) || vetoed(topic.interceptors, topic, event);
  if (outcome.vetoed) {
    counters_.vetoed.add();
  } else {
    outcome.handlers = call_handlers(topic, options.source, value);
  }
  tell_after(topic.interceptors, topic, event, outcome);
  tell_after(interceptors_, topic, event, outcome);
}

bool EventRoster::vetoed(const List<EventReceiver>& interceptors, const EventTopic& topic,
                         const AnyEvent& event) {
  for (auto* each = interceptors.front(); each != nullptr; each = interceptors.next(*each)) {
    if (each->ended()) continue;
    try {
      if (static_cast<EventInterceptor&>(*each).before(event) == EventVerdict::veto) return true;
    } catch (...) {
      failed(topic.type, {}, std::current_exception());
    }
  }
  return false;
}

void EventRoster::tell_after(const List<EventReceiver>& interceptors, const EventTopic& topic,
                             const AnyEvent& event, const EventOutcome& outcome) {
  for (auto* each = interceptors.front(); each != nullptr; each = interceptors.next(*each)) {
    if (each->ended()) continue;
    try {
      static_cast<EventInterceptor&>(*each).after(event, outcome);
    } catch (...) {
      failed(topic.type, {}, std::current_exception());
    }
  }
}

void EventRoster::failed(const EventType& type, std::error_code error,
                         const std::exception_ptr& thrown) {
  counters_.failures.add();
  const Instant now = loop_->host().now();
  if (now < after(failure_logged_, failure_log_pause)) return;
  failure_logged_ = now;
  log_event_failure(*loop_, type, error, thrown);
}

}  // namespace weir::detail
