// Stores the subscribers of one core and calls them.
#include "weir/event/detail/subscriber_table.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

#include "weir/event/event.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"

namespace weir::detail {
namespace {

constexpr std::size_t initial_slot_count = 16;
constexpr Duration failure_log_interval = std::chrono::seconds(1);

}  // namespace

void log_event_failure(Loop& loop, const EventType& type, std::error_code error,
                       const std::exception_ptr& thrown) {
  loop.platform().log("weir: core " + std::to_string(loop.core()) + ": a subscriber of the event " +
                      std::string(type.name) + " failed: " + describe(error, thrown));
}

void Subscriber::end() noexcept {
  if (std::exchange(ended_, true)) return;
  if (table_ != nullptr) table_->remove(*this);
}

SubscriberTable::SubscriberTable()
    : slots_(std::make_unique<Slot[]>(initial_slot_count)), mask_(initial_slot_count - 1) {}

SubscriberTable::~SubscriberTable() {
  assert(!frozen_ && "destroyed by a handler");
  detach_all(interceptors_);
  for (const auto& topic : topics_) {
    detach_all(topic->handlers);
    detach_all(topic->interceptors);
  }
  MetricSource::detach();
}

void SubscriberTable::bind(Loop& loop) {
  loop_ = &loop;
  loop.metrics().add(*this);
}

/// Threads: any, see MetricSource.
void SubscriberTable::collect(MetricSnapshot& sum) const {
  using Row = MetricRow<EventCounters>;
  static constexpr Row rows[]{
      {"events handled",
       count_of<&EventCounters::handled>,
       {"weir.events.handled", "{event}", "Events that handlers have handled."}},
      {"events rejected",
       count_of<&EventCounters::rejected>,
       {"weir.events.rejected", "{event}",
        "Events not published because a queue was full or closed."}},
      {"event failures",
       count_of<&EventCounters::failures>,
       {"weir.events.failures", "{failure}", "Failures of handlers of events."}},
      {"event runs dropped",
       count_of<&EventCounters::dropped>,
       {"weir.events.dropped", "{run}", "Runs of handlers dropped because they were too slow."}},
      {"events received",
       count_of<&EventCounters::received>,
       {"weir.events.received", "{event}", "Events that other cores have published."}},
      {"events vetoed",
       count_of<&EventCounters::vetoed>,
       {"weir.events.vetoed", "{event}", "Events that interceptors have vetoed."}},
  };
  collect_rows<EventCounters>(sum, rows, counters_);
}

void SubscriberTable::detach_all(detail::List<Subscriber>& list) noexcept {
  while (Subscriber* const subscriber = list.pop_front()) {
    subscriber->table_ = nullptr;
    subscriber->unref();
  }
}

// ---- Topics -------------------------------------------------------------------------------------

std::size_t SubscriberTable::add_topic(const EventType& type) {
  const std::size_t index = topics_.size();
  if (index >> EventTag::topic_bits != 0) throw std::length_error("too many types of events");
  if (2 * (index + 1) > mask_ + 1) {
    const std::size_t slots = 2 * (mask_ + 1);
    slots_ = std::make_unique<Slot[]>(slots);
    mask_ = slots - 1;
    for (const auto& topic : topics_) insert_slot(topic->type, topic->index);
  }
  topics_.push_back(std::make_unique<EventTopic>(type, index));
  insert_slot(type, index);
  return index;
}

void SubscriberTable::insert_slot(const EventType& type, std::size_t topic) noexcept {
  std::size_t at = hash(type) & mask_;
  while (slots_[at].type != nullptr) at = (at + 1) & mask_;
  slots_[at] = {&type, topic};
}

// ---- Registration -------------------------------------------------------------------------------

EventRegistration SubscriberTable::add(std::unique_ptr<EventHandler> handler,
                                       const EventType& type) {
  EventTopic& topic = *topics_[index_of(type)];
  return insert(*handler.release(), topic.handlers);
}

EventRegistration SubscriberTable::add(std::unique_ptr<EventInterceptor> interceptor,
                                       const EventType* type) {
  auto& list = type == nullptr ? interceptors_ : topics_[index_of(*type)]->interceptors;
  return insert(*interceptor.release(), list);
}

EventRegistration SubscriberTable::insert(Subscriber& subscriber,
                                          detail::List<Subscriber>& list) noexcept {
  subscriber.table_ = this;
  subscriber.list_ = &list;
  if (frozen_) {
    queue_change(subscriber);
  } else {
    list.push_back(subscriber);
  }
  return EventRegistration(subscriber);
}

void SubscriberTable::remove(Subscriber& subscriber) noexcept {
  if (subscriber.change_queued_) return;  // apply_changes() will handle it
  if (frozen_) return queue_change(subscriber);
  subscriber.unlink();
  subscriber.unref();
}

void SubscriberTable::queue_change(Subscriber& subscriber) noexcept {
  subscriber.change_queued_ = true;
  (last_changed_ == nullptr ? first_changed_ : last_changed_->next_changed_) = &subscriber;
  last_changed_ = &subscriber;
}

void SubscriberTable::freeze() noexcept {
  assert(!frozen_ && !has_changes());
  frozen_ = true;
}

void SubscriberTable::apply_changes() noexcept {
  frozen_ = false;
  while (first_changed_ != nullptr) {
    Subscriber& subscriber = *first_changed_;
    first_changed_ = std::exchange(subscriber.next_changed_, nullptr);
    if (first_changed_ == nullptr) last_changed_ = nullptr;
    subscriber.change_queued_ = false;
    if (!subscriber.ended()) {
      subscriber.list_->push_back(subscriber);
    } else {
      subscriber.unlink();
      subscriber.unref();
    }
  }
}

// ---- Dispatch -----------------------------------------------------------------------------------

std::size_t SubscriberTable::call_handlers(const EventTopic& topic, EventSource source,
                                           const void* value) {
  std::size_t called = 0;
  const auto& handlers = topic.handlers;
  for (Subscriber* each = handlers.front(); each != nullptr; each = handlers.next(*each)) {
    auto& handler = static_cast<EventHandler&>(*each);
    if (!handler.accepts(source)) continue;
    ++called;
    try {
      handler.handle(value);
    } catch (...) {
      report_failure(topic.type, {}, std::current_exception());
    }
  }
  return called;
}

void SubscriberTable::dispatch_intercepted(const EventTopic& topic, const EventOptions& options,
                                           const void* value) {
  const AnyEvent event(topic, value, options);
  EventOutcome outcome;
  outcome.vetoed = vetoed(interceptors_, topic, event) || vetoed(topic.interceptors, topic, event);
  if (outcome.vetoed) {
    counters_.vetoed.add();
  } else {
    outcome.handlers = call_handlers(topic, options.source, value);
  }
  call_after(topic.interceptors, topic, event, outcome);
  call_after(interceptors_, topic, event, outcome);
}

bool SubscriberTable::vetoed(const detail::List<Subscriber>& interceptors, const EventTopic& topic,
                             const AnyEvent& event) {
  for (auto* each = interceptors.front(); each != nullptr; each = interceptors.next(*each)) {
    if (each->ended()) continue;
    try {
      if (static_cast<EventInterceptor&>(*each).before(event) == EventVerdict::veto) return true;
    } catch (...) {
      report_failure(topic.type, {}, std::current_exception());
    }
  }
  return false;
}

void SubscriberTable::call_after(const detail::List<Subscriber>& interceptors,
                                 const EventTopic& topic, const AnyEvent& event,
                                 const EventOutcome& outcome) {
  for (auto* each = interceptors.front(); each != nullptr; each = interceptors.next(*each)) {
    if (each->ended()) continue;
    try {
      static_cast<EventInterceptor&>(*each).after(event, outcome);
    } catch (...) {
      report_failure(topic.type, {}, std::current_exception());
    }
  }
}

void SubscriberTable::report_failure(const EventType& type, std::error_code error,
                                     const std::exception_ptr& thrown) {
  counters_.failures.add();
  const Instant now = loop_->platform().now();
  if (now < after(failure_logged_, failure_log_interval)) return;
  failure_logged_ = now;
  log_event_failure(*loop_, type, error, thrown);
}

}  // namespace weir::detail
