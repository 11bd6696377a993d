// Cancelling what somebody awaits: before it begins, in every round of its loop after that, and
// together with its completion, on a runtime over each real backend. It must end, say that it was
// cancelled or have succeeded, lose nothing for whoever comes next, and leave nothing behind. (The
// World does the same in virtual time; see world_cancelling_test.cpp, and tools/check/awaitables.py
// for what must have a case.)
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tests/server.hpp"
#include "weir/cores/on_core.hpp"
#include "weir/cores/runtime.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::tests {

/// How long something takes that a case waits for, if nothing else says so.
inline constexpr Duration moment = std::chrono::microseconds(300);

/// The cancellation of one run: before the task begins, or in one of the rounds of the loop after
/// that, behind everything that is ready then: what has completed may be among it.
/// Threads: its loop's.
class Blow : Runnable {
 public:
  Blow(Loop& loop, std::size_t round) : Runnable(&run), loop_(loop), round_(round) {}

  /// Runs `task` until it has finished, which it must do soon after the blow.
  template <class T>
  Task<T> strike(Task<T> task) {
    begin();
    const Context context{&loop_, &source_};
    auto running = in_context(context, std::move(task));
    if constexpr (std::is_void_v<T>) {
      co_await std::move(running);
      co_await end();
    } else {
      auto outcome = co_await std::move(running);
      co_await end();
      co_return outcome;
    }
  }
  /// Whether it fell before the task had finished.
  bool fell() const noexcept { return source_.cancelled(); }

 private:
  void begin() {
    if (round_ == 0) return source_.cancel();
    queued_ = true;
    loop_.ready(*this);
  }
  Task<> end() {
    over_ = true;
    while (queued_) co_await yield();
  }
  static void run(Runnable& self) {
    auto& blow = static_cast<Blow&>(self);
    blow.queued_ = false;
    if (blow.over_) return;
    if (--blow.round_ == 0) return blow.source_.cancel();
    blow.queued_ = true;
    blow.loop_.ready(blow);
  }

  Loop& loop_;
  CancelSource source_;
  std::size_t round_;
  bool queued_ = false;
  bool over_ = false;
};

/// What the cases of a sweep run on: core 0 of a runtime that has two.
class Stage {
 public:
  explicit Stage(Scope& scope) : scope_(scope), quiet_(scope.running()) {}

  Loop& loop() const noexcept { return scope_.loop(); }
  /// Does it some rounds of the loop later, beside what the case awaits.
  void later(std::function<void()> action, std::size_t rounds = 6) {
    scope_.spawn(act(std::move(action), rounds));
  }
  void spawn(Task<> task) { scope_.spawn(std::move(task)); }
  /// Waits for the end of all that.
  Task<> quiet() {
    while (scope_.running() > quiet_) co_await yield();
  }

 private:
  static Task<> act(std::function<void()> action, std::size_t rounds) {
    while (rounds-- > 0) co_await yield();
    action();
  }

  Scope& scope_;
  std::size_t quiet_;
};

/// Both ends of a connection.
struct Pair {
  tcp::Stream near;
  tcp::Stream far;
};
Task<Pair> connect_pair();

/// One thing that can be awaited: what it is called, and a function that has it struck once and
/// expects what must hold then.
struct SweepCase {
  std::string_view name;
  Task<> (*run)(Blow& blow, Stage& stage);
};

/// A cancelled task says so, or has succeeded: nothing else. Returns whether it has succeeded.
template <class T>
bool succeeded(const Result<T>& outcome) {
  if (!outcome) {
    EXPECT_EQ(outcome.error(), Errc::cancelled) << outcome.error().message();
  }
  return outcome.has_value();
}

/// The same of what has no end of its own and was given a time limit here.
template <class T>
void expect_ended(const Result<T>& outcome) {
  if (outcome || outcome.error() == Errc::timed_out) return;
  EXPECT_EQ(outcome.error(), Errc::cancelled) << outcome.error().message();
}

class CancelSweep : public EachBackend {
 protected:
  /// Has each case struck before it begins, in each round after that, and at last not at all. After
  /// each run both cores have as many blocks of memory, and core 0 as many timers, as before.
  void sweep_all(std::span<const SweepCase> cases);
};

}  // namespace weir::tests
