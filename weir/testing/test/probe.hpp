// Operations, timers and other callbacks for tests. They record that they were called, and call a
// function.
#pragma once

#include <cassert>
#include <functional>

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/timers.hpp"

namespace weir {

/// A Probe is an operation without a coroutine. The start() functions below start it.
/// Lifetime: until done(), if it was started.
template <class Kind>
class Probe : public Kind {
 public:
  Probe() : Kind([](loop::Runnable& runnable) { static_cast<Probe&>(runnable).called(); }) {}

  /// Returns true if it has finished and reported it: immediately, or by the call of its
  /// Runnable.
  bool done() const noexcept { return done_; }
  /// Returns true if it has finished without an error.
  bool succeeded() const noexcept { return done_ && !this->error(); }
  /// Returns true if it was not started, or is done. It may be destroyed then.
  bool at_rest() const noexcept { return done_ || this->state() == loop::Operation::State::idle; }
  /// The function to call when it is done.
  std::function<void()> then;

  /// Records the result of a start function below.
  bool started(bool at_once) {
    assert(at_once == (this->state() == loop::Operation::State::finished));
    done_ = false;
    if (at_once) called();
    return at_once;
  }

 private:
  void called() {
    assert(!done_ && this->state() == loop::Operation::State::finished);
    done_ = true;
    if (then) then();
  }

  bool done_ = false;
};

using ReceiveProbe = Probe<loop::ReceiveOperation>;
using SendProbe = Probe<loop::SendOperation>;
using AcceptProbe = Probe<loop::AcceptOperation>;
using ConnectProbe = Probe<loop::ConnectOperation>;
using ReceiveDatagramsProbe = Probe<loop::ReceiveDatagramsOperation>;
using SendDatagramsProbe = Probe<loop::SendDatagramsOperation>;

// Each function returns true if the operation finished immediately.

inline bool start(loop::Backend& backend, loop::Socket& socket, ReceiveProbe& probe) {
  return probe.started(backend.receive(socket, probe));
}
inline bool start(loop::Backend& backend, loop::Socket& socket, SendProbe& probe) {
  return probe.started(backend.send(socket, probe));
}
inline bool start(loop::Backend& backend, loop::Socket& socket, AcceptProbe& probe) {
  return probe.started(backend.accept(socket, probe));
}
inline bool start(loop::Backend& backend, loop::Socket& socket, ConnectProbe& probe) {
  return probe.started(backend.connect(socket, probe));
}
inline bool start(loop::Backend& backend, loop::Socket& socket, ReceiveDatagramsProbe& probe) {
  return probe.started(backend.receive_datagrams(socket, probe));
}
inline bool start(loop::Backend& backend, loop::Socket& socket, SendDatagramsProbe& probe) {
  return probe.started(backend.send_datagrams(socket, probe));
}

/// A Timer that counts how often it fired and calls a function.
class TimerProbe : public loop::Timer {
 public:
  TimerProbe()
      : loop::Timer([](loop::Timer& timer) { static_cast<TimerProbe&>(timer).called(); }) {}
  int fired = 0;
  std::function<void()> then;

 private:
  void called() {
    ++fired;
    if (then) then();
  }
};

/// A HangupObserver that counts its calls.
class HangupProbe : public loop::HangupObserver {
 public:
  explicit HangupProbe(Event event = Event::hangup)
      : loop::HangupObserver(
            [](loop::HangupObserver& observer) { ++static_cast<HangupProbe&>(observer).calls; },
            event) {}
  int calls = 0;
};

/// A Runnable that calls a function.
class CallProbe : public loop::Runnable {
 public:
  explicit CallProbe(std::function<void()> call)
      : loop::Runnable([](loop::Runnable& runnable) { static_cast<CallProbe&>(runnable).call_(); }),
        call_(std::move(call)) {}

 private:
  std::function<void()> call_;
};

}  // namespace weir
