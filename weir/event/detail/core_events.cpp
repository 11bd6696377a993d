#include "weir/event/detail/core_events.hpp"

#include <bit>

#include "weir/event/bus.hpp"

namespace weir {

using detail::EventParcel;
using detail::EventPlace;
using detail::EventQueue;
using detail::EventTag;
using detail::EventTopic;

namespace {

EventTag tag_of(const std::byte* record) noexcept {
  return *reinterpret_cast<const EventTag*>(record);
}

EventParcel& parcel_of(std::byte* record) noexcept {
  return **reinterpret_cast<EventParcel**>(record + detail::event_tag_bytes);
}

}  // namespace

Events::Events(EventBus& bus, unsigned core, std::size_t queued_max)
    : Runnable([](Runnable& self) { static_cast<Events&>(self).drain(); }),
      Timer([](Timer& self) {
        auto& events = static_cast<Events&>(self);
        events.loop_->ready(events);
      }),
      queued_limit_(queued_max),
      core_(core),
      bus_(bus),
      counters_(roster_.counters()),
      arriving_max_(queued_max) {}

Events::~Events() {
  close();  // what is destroyed here publishes nothing more
  discard();
}

void Events::bind(Loop& loop) noexcept {
  assert((loop_ == nullptr || loop_ == &loop) && "one run of the loops for each EventBus");
  loop_ = &loop;
  roster_.bind(loop);
}

std::size_t Events::core_count() const noexcept {
  return bus_.core_count();
}

Loop& Events::loop_of(std::size_t core) const noexcept {
  const auto loops = loop_->group().loops();
  assert(core < loops.size() && "a bus has a core for each loop, and no more");
  return *loops[core];
}

Result<> Events::refuse() noexcept {
  counters_.refused.add();
  return fail(closed_ ? Errc::closed : Errc::limit_reached);
}

/// There is room in its queue.
void Events::add(std::size_t topic, EventPlace place, EventParcel& parcel) noexcept {
  const EventOptions& options = parcel.options();
  std::byte* const record = queue_of(options.priority).add(parcel_record_bytes);
  ::new (record) EventTag(topic, place, options.source);
  ::new (record + detail::event_tag_bytes) EventParcel*(&parcel);
}

// ---- Handling -----------------------------------------------------------------------------------

void Events::schedule() noexcept {
  scheduled_ = true;
  loop_->ready(*this);
}

void Events::drain() {
  std::size_t left = events_per_turn;
  while (pending_ != 0 && left != 0) {
    left -= drain_run(static_cast<std::size_t>(std::countr_zero(pending_)), left);
  }
  if (pending_ == 0) {
    scheduled_ = false;
  } else {
    loop_->timers().start(*this, loop_->now());  // in the next turn
  }
}

void Events::handle_front(EventQueue& queue, EventTopic& topic, std::size_t priority) {
  std::byte* const record = queue.front();
  const EventTag tag = tag_of(record);
  const EventOptions options{static_cast<EventPriority>(priority), tag.source()};
  if (tag.place() == EventPlace::record) {
    std::byte* const value = record + detail::event_tag_bytes;
    roster_.tell(topic, options, value);
    if (topic.type.destroy != nullptr) topic.type.destroy(value);
    queue.pop(topic.type.record_bytes);
  } else {
    EventParcel& parcel = parcel_of(record);
    roster_.tell(topic, options, parcel.value());
    parcel.let_go();
    queue.pop(parcel_record_bytes);
  }
}

/// Handles what stands first in the queue of a class, and what of the same kind comes behind it,
/// until something more urgent comes or the roster changes. Returns how many.
std::size_t Events::drain_run(std::size_t priority, std::size_t events_max) {
  EventQueue& queue = queues_[priority];
  const EventTag kind = tag_of(queue.front());
  EventTopic& topic = roster_.topic(kind.topic());
  const bool own = kind.place() != EventPlace::arrived;
  const unsigned more_urgent = (1U << priority) - 1;
  std::size_t handled = 0;
  roster_.hold_still();
  do {
    if (!tag_of(queue.front()).same_kind(kind)) break;
    if (own) --queued_;
    handle_front(queue, topic, priority);
    ++handled;
  } while (handled < events_max && !queue.empty() && (pending_ & more_urgent) == 0 &&
           !roster_.changed());
  if (queue.empty()) pending_ &= ~(1U << priority);
  // relaxed: only the count matters.
  if (!own) arriving_.fetch_sub(handled, std::memory_order_relaxed);
  counters_.handled.add(handled);
  roster_.settle();
  return handled;
}

// ---- Other cores --------------------------------------------------------------------------------

Result<> Events::send(unsigned core, EventParcel::Owner parcel) {
  assert(on_its_core());
  if (closed_) return refuse();
  if (core >= core_count()) return fail(Errc::not_found);
  Events& target = bus_.events(core);
  if (!target.reserve()) return refuse();
  target.arrive(parcel.release()->link(0), loop_of(core));
  return {};
}

Result<> Events::send_to_all(EventParcel::Owner parcel) {
  assert(on_its_core());
  if (queued_ >= queued_limit_) return refuse();
  const auto count = static_cast<unsigned>(core_count());
  const std::size_t topic = roster_.index_of(parcel->type());
  const EventPriority priority = parcel->options().priority;
  queue_of(priority).make_room(parcel_record_bytes);
  for (unsigned core = 0; core < count; ++core) {
    if (core == core_ || bus_.events(core).reserve()) continue;
    while (core-- > 0) {
      if (core != core_) bus_.events(core).arriving_.fetch_sub(1, std::memory_order_relaxed);
    }
    return refuse();
  }
  // From here on nothing fails.
  parcel->hold(count - 1);
  EventParcel& sent = *parcel.release();
  add(topic, EventPlace::parcel, sent);
  ++queued_;
  wake(priority);
  std::size_t link = 0;
  for (unsigned core = 0; core < count; ++core) {
    if (core == core_) continue;
    bus_.events(core).arrive(sent.link(link++), loop_of(core));
  }
  return {};
}

/// A place for one more from another core. relaxed: only the count matters.
bool Events::reserve() noexcept {
  if (arriving_.fetch_add(1, std::memory_order_relaxed) < arriving_max_) return true;
  arriving_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// For which a place was reserved. `home` is this core's loop.
void Events::arrive(EventParcel::Link& link, Loop& home) noexcept {
  EventParcel::Link* head = arrived_.load(std::memory_order_relaxed);
  do {
    link.next = head;
    // release: who takes it sees the parcel's contents.
  } while (!arrived_.compare_exchange_weak(head, &link, std::memory_order_release,
                                           std::memory_order_relaxed));
  // Whoever turns the flag has the bell to itself until it has rung. acq_rel: who finds it turned
  // has published its parcel to the bell that is still to come; see receive().
  if (rung_.exchange(true, std::memory_order_acq_rel)) return;
  bell_.loop = &home;
  home.post(bell_);
}

void Events::receive() {
  Loop& home = *bell_.loop;
  bind(home);
  // Before it looks: what comes after this look rings again. acq_rel: those who found the flag
  // turned before are seen.
  rung_.exchange(false, std::memory_order_acq_rel);
  take_arrived();
  for (std::size_t count = 0; first_arrived_ != nullptr; ++count) {
    if (count == events_per_turn) {
      if (!rung_.exchange(true, std::memory_order_acq_rel)) home.post(bell_);
      return;
    }
    EventParcel& parcel = *first_arrived_->parcel;
    const std::size_t topic = roster_.index_of(parcel.type());
    queue_of(parcel.options().priority).make_room(parcel_record_bytes);
    first_arrived_ = first_arrived_->next;
    add(topic, EventPlace::arrived, parcel);
    counters_.arrived.add();
    wake(parcel.options().priority);
  }
  last_arrived_ = nullptr;
}

/// Puts what has come behind what was taken before, oldest first.
void Events::take_arrived() noexcept {
  // acquire pairs with the release in arrive().
  EventParcel::Link* newest = arrived_.exchange(nullptr, std::memory_order_acquire);
  if (newest == nullptr) return;
  EventParcel::Link* const last = newest;
  EventParcel::Link* oldest = nullptr;
  while (newest != nullptr) {
    EventParcel::Link* const next = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, next);
  }
  (first_arrived_ == nullptr ? first_arrived_ : last_arrived_->next) = oldest;
  last_arrived_ = last;
}

// ---- The end ------------------------------------------------------------------------------------

void Events::close() noexcept {
  closed_ = true;
  queued_limit_ = 0;
}

/// Of what is closed and not busy.
void Events::give_back() noexcept {
  for (EventQueue& queue : queues_) queue.give_back();
}

bool Events::busy() const noexcept {
  return scheduled_ || first_arrived_ != nullptr || rung_.load(std::memory_order_acquire);
}

/// Destroys what nobody will handle any more.
void Events::discard() noexcept {
  for (EventQueue& queue : queues_) {
    while (!queue.empty()) {
      std::byte* const record = queue.front();
      const EventTag tag = tag_of(record);
      const detail::EventType& type = roster_.topic(tag.topic()).type;
      if (tag.place() == EventPlace::record) {
        if (type.destroy != nullptr) type.destroy(record + detail::event_tag_bytes);
        queue.pop(type.record_bytes);
      } else {
        parcel_of(record).let_go();
        queue.pop(parcel_record_bytes);
      }
    }
  }
  take_arrived();
  while (first_arrived_ != nullptr) {
    std::exchange(first_arrived_, first_arrived_->next)->parcel->let_go();
  }
}

}  // namespace weir
