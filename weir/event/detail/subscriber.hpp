// Who is told of events: handlers and interceptors, and the registration that ends them.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

#include "weir/event/event.hpp"
#include "weir/base/detail/list.hpp"

namespace weir {
namespace detail {

class EventRoster;

/// A handler or interceptor. Its roster, its registration and the runs of a handler that waits keep
/// it alive together. Threads: its core's.
class EventReceiver : public ListNode {
 public:
  virtual ~EventReceiver() = default;

  /// It is told of nothing any more.
  bool ended() const noexcept { return ended_; }
  void end() noexcept;
  void keep() noexcept { ++keepers_; }
  void release() noexcept {
    assert(keepers_ > 0);
    if (--keepers_ == 0) delete this;
  }

 protected:
  EventReceiver() noexcept = default;
  /// nullptr once that has gone.
  EventRoster* roster() const noexcept { return roster_; }

 private:
  friend class EventRoster;
  EventRoster* roster_ = nullptr;
  List<EventReceiver>* list_ = nullptr;    // where it is told of events, or will be
  EventReceiver* next_changed_ = nullptr;  // see EventRoster::settle()
  unsigned keepers_ = 1;                   // the roster, from the start
  bool ended_ = false;
  bool changing_ = false;
};

class EventHandler : public EventReceiver {
 public:
  /// Of any source, unless `from` is one.
  explicit EventHandler(EventSource from) noexcept : from_(from) {}
  bool takes(EventSource source) const noexcept { return !ended() && (!from_ || from_ == source); }
  /// May throw.
  virtual void handle(const void* event) = 0;

 private:
  EventSource from_;
};

class EventInterceptor : public EventReceiver {
 public:
  /// Both may throw.
  virtual EventVerdict before(const AnyEvent&) { return EventVerdict::pass; }
  virtual void after(const AnyEvent&, const EventOutcome&) {}
};

/// Keeps a receiver alive as long as it is. Threads: its core's.
template <class Receiver>
class EventKeeper {
 public:
  explicit EventKeeper(Receiver& receiver) noexcept : receiver_(&receiver) { receiver.keep(); }
  EventKeeper(EventKeeper&& other) noexcept : receiver_(std::exchange(other.receiver_, nullptr)) {}
  EventKeeper& operator=(EventKeeper&&) = delete;
  ~EventKeeper() {
    if (receiver_ != nullptr) receiver_->release();
  }
  Receiver* operator->() const noexcept { return receiver_; }

 private:
  Receiver* receiver_;
};

}  // namespace detail

/// As long as it lives, a handler or interceptor is registered. It may end at any time, also inside
/// the handler or interceptor itself, or inside another: from then on no call begins. What a
/// handler has captured is destroyed with it, or when the last of its calls has returned.
/// Threads: those of the core where it was registered. Lifetime: any, also longer than that of the
/// Events.
class [[nodiscard]] EventRegistration {
 public:
  EventRegistration() noexcept = default;
  EventRegistration(EventRegistration&& other) noexcept
      : receiver_(std::exchange(other.receiver_, nullptr)) {}
  EventRegistration& operator=(EventRegistration&& other) noexcept {
    EventRegistration old(std::move(other));
    std::swap(receiver_, old.receiver_);
    return *this;
  }
  ~EventRegistration() { end(); }

  /// Whether it was registered and has not ended by this object.
  explicit operator bool() const noexcept { return receiver_ != nullptr; }
  void end() noexcept {
    if (receiver_ == nullptr) return;
    detail::EventReceiver& receiver = *std::exchange(receiver_, nullptr);
    receiver.end();
    receiver.release();
  }

 private:
  friend class detail::EventRoster;
  explicit EventRegistration(detail::EventReceiver& receiver) noexcept : receiver_(&receiver) {
    receiver.keep();
  }
  detail::EventReceiver* receiver_ = nullptr;
};

}  // namespace weir
