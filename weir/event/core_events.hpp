// CoreEvents publishes, queues and handles the events of one core.
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
#include "weir/event/detail/queue.hpp"
#include "weir/event/detail/subscriber_table.hpp"
#include "weir/event/event.hpp"
#include "weir/loop/contract/detail/work_observer.hpp"
#include "weir/loop/detail/cross_core_queue.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

class EventBus;

/// A CoreEvents is one core's part of an EventBus. Published events are queued first, for any
/// core. The core handles them later from its ready queue, one after the other and never inside
/// publish(). One run handles at most 1024 events. The rest waits for the next turn, so that the
/// loop polls its sockets and timers in between.
///
/// Events are handled by class, see EventPriority. The events of a class which one core publishes
/// for another core, or for itself, are handled in the order in which they were published.
///
/// Handlers receive an event as const. An event of at most 128 bytes is stored in the queue, after
/// a tag of 8 bytes. A larger event, or one for other cores, is stored in a block of the
/// publisher's memory, which returns there. A queue takes memory in chunks of 16 KiB and keeps one
/// chunk for each class in use.
///
/// Threads: its core's (asserted for publishing), except for counters(), which any thread may call.
/// Lifetime: that of its EventBus.
class CoreEvents : loop::Runnable, loop::Timer {
 public:
  /// Used by EventBus.
  CoreEvents(EventBus& bus, unsigned core, std::size_t capacity);
  ~CoreEvents();

  // ---- Publishing. `event` is any object whose move constructor does not throw; it is moved in,
  // and destroyed if there is an error. All functions may throw std::bad_alloc, and
  // std::length_error if there are more than 65,536 types.

  /// Publishes an event for this core.
  /// Errors: Errc::limit_reached, see EventBusOptions::capacity; Errc::closed.
  template <detail::EventValue T>
  Result<> publish(T event, const EventOptions& options = {}) {
    assert(is_on_owner_core());
    if (queued_ >= queued_limit_) [[unlikely]]
      return reject();
    constexpr const detail::EventType& type = detail::event_type<T>;
    const std::size_t topic = table_.index_of(type);
    const bool in_record = type.record_bytes != 0 && !is_observed(loop::CurrentActivity::trace());
    if (in_record) [[likely]] {
      if constexpr (type.record_bytes != 0) {
        detail::EventQueue& queue = queue_of(options.priority);
        queue.make_room(type.record_bytes);
        std::byte* const record = queue.add(type.record_bytes);
        ::new (record) detail::EventTag(topic, detail::EventStorage::in_record, options.source);
        ::new (record + detail::event_tag_bytes) T(std::move(event));
      }
    } else {
      auto shared = detail::SharedEvent::make(std::move(event), 0, options);
      queue_of(options.priority).make_room(shared_record_bytes);
      add(topic, detail::EventStorage::shared, *with_span(std::move(shared)).release());
    }
    ++queued_;
    mark_pending(options.priority);
    return {};
  }

  /// Publishes an event for core `core`, which may be this one.
  /// Errors: those of publish(); Errc::limit_reached also if `core` has `capacity` events of other
  /// cores in its queue; Errc::not_found if there is no such core.
  template <detail::EventValue T>
  Result<> publish_on(unsigned core, T event, const EventOptions& options = {}) {
    if (core == core_) return publish(std::move(event), options);
    return send(core, detail::SharedEvent::make(std::move(event), 1, options));
  }

  /// Publishes an event for all cores, including this one. All cores share one object, so data to
  /// which it refers must be safe for all threads.
  /// Errors: those of publish_on(); no core then receives the event.
  template <detail::EventValue T>
  Result<> publish_to_all(T event, const EventOptions& options = {}) {
    if (core_count() == 1) return publish(std::move(event), options);
    return send_to_all(detail::SharedEvent::make(std::move(event), core_count() - 1, options));
  }

  // ---- Handling. The type of the function's first parameter is the type of its events. Functions
  // are called in the order of their registration. A function that is registered while an event is
  // handled is first called for the next event. An exception is counted and logged, at most one
  // per second, and the other functions are still called.

  /// Calls `handler(const T&)` for each event of type T.
  template <class Fn>
  EventRegistration on(Fn handler, const EventHandlerOptions& options = {}) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    static_assert(!std::is_same_v<T, AnyEvent>, "only interceptors receive events of all types");
    static_assert(std::is_void_v<std::invoke_result_t<Fn&, const T&>>,
                  "a handler returns void; a handler that returns a task needs a Scope&");
    using Handler = detail::FunctionHandler<T, Fn>;
    return table_.add(std::make_unique<Handler>(std::move(handler), options),
                      detail::event_type<T>);
  }

  /// Spawns `handler(T)`, which returns a Task<> or a Task<Result<>>, in `scope` with a copy of
  /// each event, unless `options` limit the tasks. An error that the task returns is a failure,
  /// unless it is the cancellation of the scope. The end of the registration does not stop a
  /// running task; the scope waits for the task. `scope` belongs to this core, and the
  /// registration ends before the scope does: store the registration in a variable of the scope's
  /// body.
  template <class Fn>
  EventRegistration on(Scope& scope, Fn handler, const EventTaskOptions& options = {}) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    static_assert(std::is_copy_constructible_v<T>, "a task handler receives a copy of the event");
    static_assert(is_task<std::invoke_result_t<Fn&, T>>, "a handler in a scope returns a Task");
    assert(loop_ == &scope.loop());
    using Handler = detail::TaskHandler<T, Fn>;
    return table_.add(std::make_unique<Handler>(scope, std::move(handler), options),
                      detail::event_type<T>);
  }

  /// Calls `interceptor(const T&)`, which returns an EventVerdict, before any handler of the
  /// event. An interceptor of `const AnyEvent&` is called for events of every type, and before the
  /// interceptors of T. The first veto ends this: no further interceptor of this kind and no
  /// handler is called. An interceptor that throws counts as EventVerdict::pass.
  template <class Fn>
  EventRegistration before(Fn interceptor) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    return table_.add(std::make_unique<detail::BeforeInterceptor<T, Fn>>(std::move(interceptor)),
                      intercepted_type<T>());
  }

  /// Calls `interceptor(const T&)` or `interceptor(const T&, const EventOutcome&)` after the
  /// handlers of the event have returned, or after a veto. A task handler counts as returned when
  /// its task first waits. An interceptor of `const AnyEvent&` is called for events of every type,
  /// and after the interceptors of T.
  template <class Fn>
  EventRegistration after(Fn interceptor) {
    using T = detail::EventOf<Fn>;
    detail::check_event<T>();
    return table_.add(std::make_unique<detail::AfterInterceptor<T, Fn>>(std::move(interceptor)),
                      intercepted_type<T>());
  }

  unsigned core() const noexcept { return core_; }
  Loop& loop() const noexcept { return *loop_; }
  /// Returns the number of events that this core has published for itself and not yet handled.
  std::size_t queued() const noexcept { return queued_; }
  const EventCounters& counters() const noexcept { return counters_; }

 private:
  friend class EventBus;
  /// The maximum number of events that a turn handles, and that it takes in from other cores,
  /// before the loop runs other work.
  static constexpr std::size_t events_per_turn = 1024;
  static constexpr std::size_t shared_record_bytes =
      detail::event_tag_bytes + sizeof(detail::SharedEvent*);

  template <class T>
  static constexpr const detail::EventType* intercepted_type() noexcept {
    if constexpr (std::is_same_v<T, AnyEvent>) {
      return nullptr;
    } else {
      return &detail::event_type<T>;
    }
  }
  detail::EventQueue& queue_of(EventPriority priority) noexcept {
    return queues_[static_cast<std::size_t>(priority)];
  }
  /// Marks the class as non-empty and schedules the handling.
  void mark_pending(EventPriority priority) noexcept {
    pending_ |= 1U << static_cast<unsigned>(priority);
    if (!scheduled_) schedule();
  }
  bool is_on_owner_core() const noexcept {
    return loop_ != nullptr && (Loop::current() == loop_ || Loop::current() == nullptr);
  }

  std::size_t core_count() const noexcept;
  Loop& loop_of(std::size_t core) const noexcept;
  void bind(Loop& loop) noexcept;
  Result<> reject() noexcept;
  detail::SharedEvent::Ptr with_span(detail::SharedEvent::Ptr shared) const noexcept;
  void add(std::size_t topic, detail::EventStorage storage, detail::SharedEvent& shared) noexcept;

  // Handling.
  void schedule() noexcept;
  void drain();
  std::size_t drain_batch(std::size_t priority, std::size_t events_max);
  void handle_front(detail::EventQueue& queue, detail::EventTopic& topic, std::size_t priority);
  void dispatch_observed(const detail::EventTopic& topic, const EventOptions& options,
                         detail::SharedEvent& shared);

  // Other cores.
  Result<> send(unsigned core, detail::SharedEvent::Ptr shared);
  Result<> send_to_all(detail::SharedEvent::Ptr shared);
  bool try_reserve() noexcept;                                                 // any core's thread
  void enqueue_remote(detail::SharedEvent::Link& link, Loop& owner) noexcept;  // any core's thread
  void receive_inbound(Loop& owner);

  // The end.
  void close() noexcept;
  bool is_busy() const noexcept;
  void release_memory() noexcept;
  void discard() noexcept;

  // Members that publishing uses come first.
  std::size_t queued_ = 0;
  std::size_t queued_limit_;  // 0 when closed
  unsigned pending_ = 0;      // one bit for each class that is not empty
  bool scheduled_ = false;    // in the ready queue, or the timer is armed
  bool closed_ = false;
  unsigned core_;
  Loop* loop_ = nullptr;  // set by EventBus::local()
  std::array<detail::EventQueue, event_priority_count> queues_;
  detail::SubscriberTable table_;
  EventBus& bus_;
  EventCounters& counters_;

  // Members that other cores use.
  alignas(64)
      loop::CrossCoreQueue<detail::SharedEvent::Link, &detail::SharedEvent::Link::next> inbound_;
  std::atomic<std::size_t> inbound_count_{0};  // unhandled events from other cores
  const std::size_t inbound_count_max_;
};

}  // namespace weir
