// Subscribers of events, which are handlers and interceptors, and their registration.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

#include "weir/base/detail/list.hpp"
#include "weir/event/event.hpp"

namespace weir {
namespace detail {

class SubscriberTable;

/// A Subscriber is a handler or interceptor. Its table, its registration and the tasks of a
/// handler share its ownership.
/// Threads: its core's.
class Subscriber : public detail::ListNode {
 public:
  virtual ~Subscriber() = default;

  /// Returns true if the subscriber receives no more events.
  bool ended() const noexcept { return ended_; }
  void end() noexcept;
  void add_ref() noexcept { ++refs_; }
  void unref() noexcept {
    assert(refs_ > 0);
    if (--refs_ == 0) delete this;
  }

 protected:
  Subscriber() noexcept = default;
  /// Returns the table, or nullptr if the table was destroyed.
  SubscriberTable* table() const noexcept { return table_; }

 private:
  friend class SubscriberTable;
  SubscriberTable* table_ = nullptr;
  detail::List<Subscriber>* list_ =
      nullptr;                          // the list that calls it, now or after apply_changes()
  Subscriber* next_changed_ = nullptr;  // see SubscriberTable::apply_changes()
  unsigned refs_ = 1;                   // the first one is the table's
  bool ended_ = false;
  bool change_queued_ = false;
};

class EventHandler : public Subscriber {
 public:
  /// Handles events of any source, or only those of `from` if it is set.
  explicit EventHandler(EventSource from) noexcept : from_(from) {}
  bool accepts(EventSource source) const noexcept {
    return !ended() && (!from_ || from_ == source);
  }
  /// Handles one event; may throw.
  virtual void handle(const void* event) = 0;

 private:
  EventSource from_;
};

class EventInterceptor : public Subscriber {
 public:
  /// Both functions may throw.
  virtual EventVerdict before(const AnyEvent&) { return EventVerdict::pass; }
  virtual void after(const AnyEvent&, const EventOutcome&) {}
};

/// A SubscriberRef is a counted reference, which keeps a subscriber alive.
/// Threads: its core's.
template <class SubscriberType>
class SubscriberRef {
 public:
  explicit SubscriberRef(SubscriberType& subscriber) noexcept : subscriber_(&subscriber) {
    subscriber.add_ref();
  }
  SubscriberRef(SubscriberRef&& other) noexcept
      : subscriber_(std::exchange(other.subscriber_, nullptr)) {}
  SubscriberRef& operator=(SubscriberRef&&) = delete;
  ~SubscriberRef() {
    if (subscriber_ != nullptr) subscriber_->unref();
  }
  SubscriberType* operator->() const noexcept { return subscriber_; }

 private:
  SubscriberType* subscriber_;
};

}  // namespace detail

/// An EventRegistration keeps a handler or interceptor registered until it is ended or destroyed.
/// A registration may be ended at any time, also inside the handler itself or inside another one.
/// No call begins after the end. The function's captures are destroyed at the end, or when the
/// last of the function's calls has returned.
/// Threads: those of the core that registered it.
/// Lifetime: any; it may outlive the CoreEvents.
class [[nodiscard]] EventRegistration {
 public:
  EventRegistration() noexcept = default;
  EventRegistration(EventRegistration&& other) noexcept
      : subscriber_(std::exchange(other.subscriber_, nullptr)) {}
  EventRegistration& operator=(EventRegistration&& other) noexcept {
    EventRegistration old(std::move(other));
    std::swap(subscriber_, old.subscriber_);
    return *this;
  }
  ~EventRegistration() { end(); }

  /// Returns true if this object has a registration that it has not ended.
  explicit operator bool() const noexcept { return subscriber_ != nullptr; }
  void end() noexcept {
    if (subscriber_ == nullptr) return;
    detail::Subscriber& subscriber = *std::exchange(subscriber_, nullptr);
    subscriber.end();
    subscriber.unref();
  }

 private:
  friend class detail::SubscriberTable;
  explicit EventRegistration(detail::Subscriber& subscriber) noexcept : subscriber_(&subscriber) {
    subscriber.add_ref();
  }
  detail::Subscriber* subscriber_ = nullptr;
};

}  // namespace weir
