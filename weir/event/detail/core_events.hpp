// The events of one core: publishing them, and who handles them.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weir/event/detail/event_handler.hpp"
#include "weir/app/event_parcel.hpp"
#include "weir/event/detail/queue.hpp"
#include "weir/event/detail/subscriber_table.hpp"
#include "weir/app/event_tag.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

class EventBus;

/// One core's part of an EventBus. Whatever is published here is queued first, on whichever core it
/// is for, and handled in a later round of that core's loop; handlers run one after the other,
/// never inside publish(). A turn of the loop handles some thousand events at most before it looks
/// at its sockets and timers again.
///
/// Order: by class, see EventPriority. Within a class, the events that one core publishes for
/// another (or for itself) are handled in the order in which it published them.
///
/// An event is const for all who handle it. One of up to 128 bytes lies in the queue, with 8 bytes
/// before it; a larger one, or one for other cores, in a block of the publisher's memory, which
/// returns there. A queue takes memory in chunks of 16 KiB and keeps one for each class in use.
///
/// Threads: its core's, but for counters(). Lifetime: that of its EventBus.
class Events : Runnable, Timer {
 public:
  /// For EventBus.
  Events(EventBus& bus, unsigned core, std::size_t queued_max);
  ~Events();

  // ---- Publishing. `event` is any object that can be moved without throwing, and is moved in; an
  // error destroys it. All may throw std::bad_alloc, and std::length_error beyond 65,536 types.

  /// For this core. Errors: Errc::limit_reached, see EventBusOptions::queued_max; Errc::closed.
  template <detail::EventValue T>
  Result<> publish(T event, const EventOptions& options = {}) {
    assert(on_its_core());
    if (queued_ >= queued_limit_) [[unlikely]]
      return refuse();
    constexpr const detail::EventType& type = detail::event_type<T>;
    const std::size_t topic = roster_.index_of(type);
    if constexpr (type.record_bytes != 0) {
      detail::EventQueue& queue = queue_of(options.priority);
      queue.make_room(type.record_bytes);
      std::byte* const record = queue.add(type.record_bytes);
      ::new (record) detail::EventTag(topic, detail::EventPlace::record, options.source);
      ::new (record + detail::event_tag_bytes) T(std::move(event));
    } else {
      auto parcel = detail::EventParcel::make(std::move(event), 0, options);
      queue_of(options.priority).make_room(parcel_record_bytes);
      add(topic, detail::EventPlace::parcel, *parcel.release());
    }
    ++queued_;
    wake(options.priority);
    return {};
  }

  /// For core `core`, which may be this one. Errors: as publish(); limit_reached also when as many
  /// events of other cores wait there; Errc::not_found where there is no such core.
  template <detail::EventValue T>
  Result<> publish_on(unsigned core, T event, const EventOptions& options = {}) {
    if (core == core_) return publish(std::move(event), options);
    return send(core, detail::EventParcel::make(std::move(event), 1, options));
  }

  /// For all cores, this one included, or, when it returns an error, for none: as publish_on().
  /// All of them share the one event. What it refers to must be good for all threads.
  template <detail::EventValue T>
  Result<> publish_to_all(T event, const EventOptions& options = {}) {
    if (core_count() == 1) return publish(std::move(event), options);
    return send_to_all(detail::EventParcel::make(std::move(event), core_count() - 1, options));
  }

  // ---- Handling. The function's first parameter is the type of events it is told of. Functions
  // are called in the order in which they were registered; one that is registered while an event is
  // handled is told of the next. What they throw is counted, logged (once a second at most), and
  // stops nobody else.

  /// Calls `handler(const T&)` for each event of type T.
  template <class Fn>
  EventRegistration on(Fn handler, const EventHandlerOptions& options = {}) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    static_assert(!std::is_same_v<T, AnyEvent>, "only interceptors are told of all events");
    static_assert(std::is_void_v<std::invoke_result_t<Fn&, const T&>>,
                  "a handler returns nothing; one that waits is given a Scope& to run in");
    using Handler = detail::EventFunction<T, Fn>;
    return roster_.add(std::make_unique<Handler>(std::move(handler), options),
                       detail::event_type<T>);
  }

  /// Spawns `handler(T)`, which returns a Task<> or a Task<Result<>>, in `scope` with a copy of
  /// each event, or as `options` say; an error that it returns is a failure, unless it is that the
  /// scope was cancelled. Ending the registration does not stop a run under way; the scope waits
  /// for it. `scope` is one of this core's, and the registration ends before it does: keep it in a
  /// variable of the scope's body.
  template <class Fn>
  EventRegistration on(Scope& scope, Fn handler, const EventTaskOptions& options = {}) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    static_assert(std::is_copy_constructible_v<T>, "a handler that waits gets a copy");
    static_assert(is_task<std::invoke_result_t<Fn&, T>>, "a handler in a scope returns a Task");
    assert(loop_ == &scope.loop());
    using Handler = detail::EventTask<T, Fn>;
    return roster_.add(std::make_unique<Handler>(scope, std::move(handler), options),
                       detail::event_type<T>);
  }

  /// Asks `interceptor(const T&)`, which returns an EventVerdict, before any handler of the event;
  /// with `const AnyEvent&`, before those of events of every type. Those of all types are asked
  /// first. The first veto ends it: no handler is called. One that throws has nothing against it.
  template <class Fn>
  EventRegistration before(Fn interceptor) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    return roster_.add(std::make_unique<detail::EventGuard<T, Fn>>(std::move(interceptor)),
                       intercepted<T>());
  }

  /// Calls `interceptor(const T&)` or `interceptor(const T&, const EventOutcome&)` after the
  /// handlers of the event have returned (those that wait: have first waited), or it was vetoed;
  /// with `const AnyEvent&`, after those of every type, behind those of the type.
  template <class Fn>
  EventRegistration after(Fn interceptor) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    return roster_.add(std::make_unique<detail::EventWitness<T, Fn>>(std::move(interceptor)),
                       intercepted<T>());
  }

  unsigned core() const noexcept { return core_; }
  Loop& loop() const noexcept { return *loop_; }
  /// Events published here for this core that are not handled yet.
  std::size_t queued() const noexcept { return queued_; }
  const EventCounters& counters() const noexcept { return counters_; }

 private:
  friend class EventBus;
  /// A run handles at most so many events, and takes in as many from other cores, before the loop
  /// goes on with others.
  static constexpr std::size_t events_per_turn = 1024;
  static constexpr std::size_t parcel_record_bytes =
      detail::event_tag_bytes + sizeof(detail::EventParcel*);

  /// Rings on this core when something has arrived; under way once at most.
  struct Bell : Runnable {
    explicit Bell(Events& of) noexcept
        : Runnable([](Runnable& self) { static_cast<Bell&>(self).events.receive(); }), events(of) {}
    Events& events;
    Loop* loop = nullptr;  // where it is posted to; by who posts it
  };

  template <class T>
  static constexpr const detail::EventType* intercepted() noexcept {
    if constexpr (std::is_same_v<T, AnyEvent>) {
      return nullptr;
    } else {
      return &detail::event_type<T>;
    }
  }
  detail::EventQueue& queue_of(EventPriority priority) noexcept {
    return queues_[static_cast<std::size_t>(priority)];
  }
  /// There is something of this class to handle.
  void wake(EventPriority priority) noexcept {
    pending_ |= 1U << static_cast<unsigned>(priority);
    if (!scheduled_) schedule();
  }
  bool on_its_core() const noexcept {
    return loop_ != nullptr && (Loop::current() == loop_ || Loop::current() == nullptr);
  }

  std::size_t core_count() const noexcept;
  Loop& loop_of(std::size_t core) const noexcept;
  void bind(Loop& loop) noexcept;
  Result<> refuse() noexcept;
  void add(std::size_t topic, detail::EventPlace place, detail::EventParcel& parcel) noexcept;

  // Handling.
  void schedule() noexcept;
  void drain();
  std::size_t drain_run(std::size_t priority, std::size_t events_max);
  void handle_front(detail::EventQueue& queue, detail::EventTopic& topic, std::size_t priority);

  // Other cores.
  Result<> send(unsigned core, detail::EventParcel::Owner parcel);
  Result<> send_to_all(detail::EventParcel::Owner parcel);
  bool reserve() noexcept;                                            // any core's thread
  void arrive(detail::EventParcel::Link& link, Loop& home) noexcept;  // any core's thread
  void receive();
  void take_arrived() noexcept;

  // The end.
  void close() noexcept;
  bool busy() const noexcept;
  void give_back() noexcept;
  void discard() noexcept;

  // What publishing touches comes first.
  std::size_t queued_ = 0;
  std::size_t queued_limit_;  // 0 when closed
  unsigned pending_ = 0;      // a bit for each class that has something
  bool scheduled_ = false;    // in the ready queue, or the timer is armed
  bool closed_ = false;
  unsigned core_;
  Loop* loop_ = nullptr;  // until EventBus::local()
  std::array<detail::EventQueue, event_priorities> queues_;
  detail::EventRoster roster_;
  EventBus& bus_;
  EventCounters& counters_;
  Bell bell_{*this};
  detail::EventParcel::Link* first_arrived_ = nullptr;  // taken in, oldest first, not yet queued
  detail::EventParcel::Link* last_arrived_ = nullptr;

  // What other cores touch.
  alignas(64) std::atomic<detail::EventParcel::Link*> arrived_{nullptr};  // newest first
  std::atomic<bool> rung_{false};         // the bell is in the inbox, or about to be
  std::atomic<std::size_t> arriving_{0};  // events of other cores that are not handled yet
  const std::size_t arriving_max_;
};

}  // namespace weir
