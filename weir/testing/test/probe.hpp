// Operations and timers for tests: they note that they were called, and call on.
#pragma once

#include <cassert>
#include <functional>

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/timers.hpp"

namespace weir {

/// An operation without a coroutine around it. Start it by one of the functions below.
/// Lifetime: until done(), if it was started.
template <class Kind>
class Probe : public Kind {
 public:
  Probe() : Kind([](Runnable& runnable) { static_cast<Probe&>(runnable).called(); }) {}

  /// Finished, and its owner knows: at once, or by its Runnable's call.
  bool done() const noexcept { return done_; }
  /// Finished without an error.
  bool succeeded() const noexcept { return done_ && !this->error(); }
  /// Not started, or done: it may be destroyed.
  bool at_rest() const noexcept { return done_ || this->state() == Operation::State::idle; }
  /// Called when it is done.
  std::function<void()> then;

  /// For the functions below.
  bool started(bool at_once) {
    assert(at_once == (this->state() == Operation::State::finished));
    done_ = false;
    if (at_once) called();
    return at_once;
  }

 private:
  void called() {
    assert(!done_ && this->state() == Operation::State::finished);
    done_ = true;
    if (then) then();
  }

  bool done_ = false;
};

using ReceiveProbe = Probe<ReceiveOperation>;
using SendProbe = Probe<SendOperation>;
using AcceptProbe = Probe<AcceptOperation>;
using ConnectProbe = Probe<ConnectOperation>;
using ReceiveDatagramsProbe = Probe<ReceiveDatagramsOperation>;
using SendDatagramsProbe = Probe<SendDatagramsOperation>;

// Each returns whether the operation finished at once.

inline bool start(Backend& backend, Socket& socket, ReceiveProbe& probe) {
  return probe.started(backend.receive(socket, probe));
}
inline bool start(Backend& backend, Socket& socket, SendProbe& probe) {
  return probe.started(backend.send(socket, probe));
}
inline bool start(Backend& backend, Socket& socket, AcceptProbe& probe) {
  return probe.started(backend.accept(socket, probe));
}
inline bool start(Backend& backend, Socket& socket, ConnectProbe& probe) {
  return probe.started(backend.connect(socket, probe));
}
inline bool start(Backend& backend, Socket& socket, ReceiveDatagramsProbe& probe) {
  return probe.started(backend.receive_datagrams(socket, probe));
}
inline bool start(Backend& backend, Socket& socket, SendDatagramsProbe& probe) {
  return probe.started(backend.send_datagrams(socket, probe));
}

/// Notes when it fired.
class TimerProbe : public Timer {
 public:
  TimerProbe() : Timer([](Timer& timer) { static_cast<TimerProbe&>(timer).called(); }) {}
  int fired = 0;
  std::function<void()> then;

 private:
  void called() {
    ++fired;
    if (then) then();
  }
};

/// Counts the calls.
class HangupProbe : public HangupWatcher {
 public:
  HangupProbe()
      : HangupWatcher([](HangupWatcher& watcher) { ++static_cast<HangupProbe&>(watcher).calls; }) {}
  int calls = 0;
};

/// A Runnable that calls a function.
class CallProbe : public Runnable {
 public:
  explicit CallProbe(std::function<void()> call)
      : Runnable([](Runnable& runnable) { static_cast<CallProbe&>(runnable).call_(); }),
        call_(std::move(call)) {}

 private:
  std::function<void()> call_;
};

}  // namespace weir
