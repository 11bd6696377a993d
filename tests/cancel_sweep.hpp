// Cancelling what somebody awaits: before it begins, in each of the first 16 rounds of its loop
// after that and in drawn ones behind them, together with its completion, and while its loop
// sleeps, by a timer or from another core, on a runtime over each real backend and in the World. It
// must end, say that it was cancelled or have succeeded, lose nothing for whoever comes next, and
// leave nothing behind. (See world_cancelling_test.cpp for what waits for another host, and
// tools/check/awaitables.py for what must have a case.)
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tests/server.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::tests {

/// How long something takes that a case waits for, if nothing else says so.
inline constexpr Duration moment = std::chrono::microseconds(300);

/// Another round; beyond some, which take next to no time in the World, a short sleep.
Task<> a_while(std::size_t rounds);

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
    for (std::size_t rounds = 0; scope_.running() > quiet_; ++rounds) co_await a_while(rounds);
  }

 private:
  static Task<> act(std::function<void()> action, std::size_t rounds) {
    while (rounds-- > 0) co_await yield();
    action();
  }

  Scope& scope_;
  std::size_t quiet_;
};

/// Whence the cancellation of a run comes.
enum class From : std::uint8_t {
  a_round,     ///< of the loop, which so never sleeps: behind everything that is ready then
  a_timer,     ///< the loop may sleep until then
  other_core,  ///< which wakes the loop up
};

/// The cancellation of one run, at a step: before the task begins (0), or as many rounds later, or
/// after a time that grows with the steps. What has completed may be among what is ready then.
/// Threads: its loop's. Lifetime: shorter than its stage's.
class Blow : Runnable {
 public:
  static constexpr std::size_t never_falls = static_cast<std::size_t>(-1);
  static constexpr std::size_t timed_steps = 10;  ///< beyond which the time does not grow

  Blow(Stage& stage, From from, std::size_t step)
      : Runnable(&run), stage_(stage), loop_(stage.loop()), from_(from), step_(step) {}

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
  void begin();
  Task<> end();
  Task<> fall_in_time();
  static void run(Runnable& self);

  Stage& stage_;
  Loop& loop_;
  From from_;
  CancelSource source_;
  std::size_t step_;
  bool on_its_way_ = false;
  bool over_ = false;
};

/// A folder of the machine that the case runs on, be it a real one: empty at first, gone with all
/// that is in it at the end. Threads: one.
class Folder {
 public:
  explicit Folder(const Stage& stage);
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  const std::string& root() const noexcept { return root_; }
  std::string path(std::string_view name) const { return root_ + "/" + std::string(name); }
  void write(std::string_view name, std::string_view text) const;

 private:
  FileSystem& files_;
  std::string root_;
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
  /// Has each case struck before it begins, in rounds after that, and at last not at all; then
  /// from a timer and from the other core. After each run both cores have as many blocks of memory,
  /// and core 0 as many timers, as before.
  void sweep_all(std::span<const SweepCase> cases);
};

/// The same in a World: in virtual time, with all that may vary drawn from a seed. At the end
/// nothing is left on the host.
void sweep_all_in_a_world(std::span<const SweepCase> cases);

}  // namespace weir::tests
