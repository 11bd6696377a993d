// Queues and handles the events of one core, and receives those of other cores.
#include "weir/event/core_events.hpp"

#include <bit>
#include <memory>
#include <new>

#include "weir/event/bus.hpp"

namespace weir {

using detail::EventQueue;
using detail::EventStorage;
using detail::EventTag;
using detail::EventTopic;
using detail::SharedEvent;

namespace {

EventTag tag_of(const std::byte* record) noexcept {
  return *reinterpret_cast<const EventTag*>(record);
}

SharedEvent& shared_event_of(std::byte* record) noexcept {
  return **reinterpret_cast<SharedEvent**>(record + detail::event_tag_bytes);
}

}  // namespace

CoreEvents::CoreEvents(EventBus& bus, unsigned core, std::size_t capacity)
    : loop::Runnable([](loop::Runnable& self) { static_cast<CoreEvents&>(self).drain(); }),
      loop::Timer([](loop::Timer& self) {
        auto& events = static_cast<CoreEvents&>(self);
        events.loop_->ready(events);
      }),
      queued_limit_(capacity),
      core_(core),
      bus_(bus),
      counters_(table_.counters()),
      inbound_(
          [](void* self, Loop& owner) { static_cast<CoreEvents*>(self)->receive_inbound(owner); },
          this),
      inbound_count_max_(capacity) {}

CoreEvents::~CoreEvents() {
  close();  // destructors of discarded events cannot publish
  discard();
}

void CoreEvents::bind(Loop& loop) noexcept {
  assert((loop_ == nullptr || loop_ == &loop) && "one run of the loops for each EventBus");
  loop_ = &loop;
  table_.bind(loop);
}

std::size_t CoreEvents::core_count() const noexcept {
  return bus_.core_count();
}

Loop& CoreEvents::loop_of(std::size_t core) const noexcept {
  const auto loops = loop_->group().loops();
  assert(core < loops.size() && "the bus has one core for each loop");
  return *loops[core];
}

Result<> CoreEvents::reject() noexcept {
  counters_.rejected.add();
  return fail(closed_ ? Errc::closed : Errc::limit_reached);
}

/// Notes the sampled span that publishes the event, if there is one.
SharedEvent::Ptr CoreEvents::with_span(SharedEvent::Ptr shared) const noexcept {
  const TraceContext* const trace = loop::CurrentActivity::trace();
  if (!is_observed(trace) || loop_ == nullptr) return shared;
  try {
    shared->set_span(
        std::make_unique<detail::PublishingSpan>(trace->span(), loop_->platform().now()));
  } catch (const std::bad_alloc&) {
    // The event is handled without a span.
  }
  return shared;
}

/// Adds a record; the queue has room for it.
void CoreEvents::add(std::size_t topic, EventStorage storage, SharedEvent& shared) noexcept {
  const EventOptions& options = shared.options();
  std::byte* const record = queue_of(options.priority).add(shared_record_bytes);
  ::new (record) EventTag(topic, storage, options.source);
  ::new (record + detail::event_tag_bytes) SharedEvent*(&shared);
}

// ---- Handling -----------------------------------------------------------------------------------

void CoreEvents::schedule() noexcept {
  scheduled_ = true;
  loop_->ready(*this);
}

void CoreEvents::drain() {
  std::size_t left = events_per_turn;
  while (pending_ != 0 && left != 0) {
    left -= drain_batch(static_cast<std::size_t>(std::countr_zero(pending_)), left);
  }
  if (pending_ == 0) {
    scheduled_ = false;
  } else {
    loop_->timers().start(*this, loop_->now());  // in the next turn
  }
}

void CoreEvents::handle_front(EventQueue& queue, EventTopic& topic, std::size_t priority) {
  std::byte* const record = queue.front();
  const EventTag tag = tag_of(record);
  const EventOptions options{static_cast<EventPriority>(priority), tag.source()};
  if (tag.storage() == EventStorage::in_record) {
    std::byte* const value = record + detail::event_tag_bytes;
    table_.dispatch(topic, options, value);
    if (topic.type.destroy != nullptr) topic.type.destroy(value);
    queue.pop(topic.type.record_bytes);
  } else {
    SharedEvent& shared = shared_event_of(record);
    if (shared.span() == nullptr) [[likely]] {
      table_.dispatch(topic, options, shared.value());
    } else {
      dispatch_observed(topic, options, shared);
    }
    shared.unref();
    queue.pop(shared_record_bytes);
  }
}

/// Calls the handlers of an event that a sampled span has published, as work of that span.
void CoreEvents::dispatch_observed(const EventTopic& topic, const EventOptions& options,
                                   SharedEvent& shared) {
  const detail::PublishingSpan& from = *shared.span();
  const auto observed = observer_of(from.span)->begin_work(
      nullptr, from.span,
      {.name = "event", .detail = topic.type.name, .queued_at = from.published_at});
  const loop::CurrentActivity::TraceGuard guard(observed != nullptr ? &observed->trace() : nullptr);
  table_.dispatch(topic, options, shared.value());
}

/// Returns the work of a task that handles an event for the current span, if that is sampled.
std::unique_ptr<WorkObserver::Running> detail::begin_event_task(Loop& loop,
                                                                const EventType& type) noexcept {
  const TraceContext* const trace = loop::CurrentActivity::trace();
  if (!is_observed(trace)) [[likely]]
    return nullptr;
  return observer_of(trace->span())
      ->begin_work(nullptr, trace->span(),
                   {.name = "handle", .detail = type.name, .queued_at = loop.platform().now()});
}

Task<> detail::run_event_task(std::unique_ptr<WorkObserver::Running> observed, Task<> task) {
  const Context outer = co_await this_context();
  CancelSource cancel(outer.cancel);
  cancel.set_trace(&observed->trace());
  auto running = in_context(Context{outer.loop, &cancel}, std::move(task));
  co_await std::move(running);
}

/// Handles the first event of a class, and the events of the same topic and storage after it. The
/// call ends if a more urgent event arrives or the table changes.
/// Returns: the number of handled events.
std::size_t CoreEvents::drain_batch(std::size_t priority, std::size_t events_max) {
  EventQueue& queue = queues_[priority];
  const EventTag first = tag_of(queue.front());
  EventTopic& topic = table_.topic(first.topic());
  const bool own = first.storage() != EventStorage::shared_remote;
  const unsigned more_urgent = (1U << priority) - 1;
  std::size_t handled = 0;
  table_.freeze();
  do {
    if (!tag_of(queue.front()).has_same_topic_and_storage(first)) break;
    if (own) --queued_;
    handle_front(queue, topic, priority);
    ++handled;
  } while (handled < events_max && !queue.empty() && (pending_ & more_urgent) == 0 &&
           !table_.has_changes());
  if (queue.empty()) pending_ &= ~(1U << priority);
  // relaxed: only the count matters.
  if (!own) inbound_count_.fetch_sub(handled, std::memory_order_relaxed);
  counters_.handled.add(handled);
  table_.apply_changes();
  return handled;
}

// ---- Other cores --------------------------------------------------------------------------------

Result<> CoreEvents::send(unsigned core, SharedEvent::Ptr shared) {
  assert(is_on_owner_core());
  if (closed_) return reject();
  if (core >= core_count()) return fail(Errc::not_found);
  CoreEvents& target = bus_.events(core);
  if (!target.try_reserve()) return reject();
  target.enqueue_remote(with_span(std::move(shared)).release()->link(0), loop_of(core));
  return {};
}

Result<> CoreEvents::send_to_all(SharedEvent::Ptr shared) {
  assert(is_on_owner_core());
  if (queued_ >= queued_limit_) return reject();
  const auto count = static_cast<unsigned>(core_count());
  const std::size_t topic = table_.index_of(shared->type());
  const EventPriority priority = shared->options().priority;
  queue_of(priority).make_room(shared_record_bytes);
  for (unsigned core = 0; core < count; ++core) {
    if (core == core_ || bus_.events(core).try_reserve()) continue;
    while (core-- > 0) {
      if (core != core_) bus_.events(core).inbound_count_.fetch_sub(1, std::memory_order_relaxed);
    }
    return reject();
  }
  // The code below cannot fail.
  shared->add_refs(count - 1);
  SharedEvent& sent = *with_span(std::move(shared)).release();
  add(topic, EventStorage::shared, sent);
  ++queued_;
  mark_pending(priority);
  std::size_t link = 0;
  for (unsigned core = 0; core < count; ++core) {
    if (core == core_) continue;
    bus_.events(core).enqueue_remote(sent.link(link++), loop_of(core));
  }
  return {};
}

/// Reserves capacity for one event from another core. relaxed: only the count matters.
bool CoreEvents::try_reserve() noexcept {
  if (inbound_count_.fetch_add(1, std::memory_order_relaxed) < inbound_count_max_) return true;
  inbound_count_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Adds an event, for which try_reserve() was called. `owner` is this core's loop.
void CoreEvents::enqueue_remote(SharedEvent::Link& link, Loop& owner) noexcept {
  const bool pushed = inbound_.push(link, owner);
  assert(pushed && "never closed");
  static_cast<void>(pushed);
}

void CoreEvents::receive_inbound(Loop& owner) {
  bind(owner);
  for (std::size_t count = 0; inbound_.front() != nullptr; ++count) {
    if (count == events_per_turn) return inbound_.receive_again(owner);
    SharedEvent& shared = *inbound_.front()->shared;
    const std::size_t topic = table_.index_of(shared.type());
    queue_of(shared.options().priority).make_room(shared_record_bytes);
    inbound_.pop();
    add(topic, EventStorage::shared_remote, shared);
    counters_.received.add();
    mark_pending(shared.options().priority);
  }
}

// ---- The end ------------------------------------------------------------------------------------

void CoreEvents::close() noexcept {
  closed_ = true;
  queued_limit_ = 0;
}

/// Releases the queues' memory; the core is closed and not busy.
void CoreEvents::release_memory() noexcept {
  for (EventQueue& queue : queues_) queue.release_memory();
}

bool CoreEvents::is_busy() const noexcept {
  return scheduled_ || !inbound_.idle();
}

/// Destroys the events that are not handled.
void CoreEvents::discard() noexcept {
  for (EventQueue& queue : queues_) {
    while (!queue.empty()) {
      std::byte* const record = queue.front();
      const EventTag tag = tag_of(record);
      const detail::EventType& type = table_.topic(tag.topic()).type;
      if (tag.storage() == EventStorage::in_record) {
        if (type.destroy != nullptr) type.destroy(record + detail::event_tag_bytes);
        queue.pop(type.record_bytes);
      } else {
        shared_event_of(record).unref();
        queue.pop(shared_record_bytes);
      }
    }
  }
  inbound_.collect();
  while (SharedEvent::Link* const link = inbound_.pop()) link->shared->unref();
}

}  // namespace weir
