// A cancel sweep cancels one awaited operation at many different times and checks the outcome. It
// cancels before the operation begins, in each of its first 16 loop turns, and in randomly drawn
// later turns. It also cancels together with the completion, and while the loop sleeps, by a
// timer or from another core. The sweep runs on a runtime over each real backend and in a
// sim::World.
// The operation must end and report either success or cancellation. It must lose nothing for the
// next caller and leave nothing behind.
// Operations that wait for another host have their sweep in weir/sim/cancelling_test.cpp. The
// list of awaitables that must have a case is in tools/check/awaitables.py.
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
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::tests {

/// The default duration of an operation that a case waits for.
inline constexpr Duration short_delay = std::chrono::microseconds(300);

/// Waits for another loop turn. It also sleeps for 100 us after 100 rounds, which takes almost no
/// real time in a World.
Task<> back_off(std::size_t rounds);

/// A SweepEnvironment is what a case runs on: core 0 of a runtime with two cores.
class SweepEnvironment {
 public:
  explicit SweepEnvironment(Scope& scope) : scope_(scope), idle_task_count_(scope.running()) {}

  Loop& loop() const noexcept { return scope_.loop(); }
  /// Runs `action` after `rounds` loop turns, concurrently with what the case awaits.
  void run_later(std::function<void()> action, std::size_t rounds = 6) {
    scope_.spawn(act(std::move(action), rounds));
  }
  void spawn(Task<> task) { scope_.spawn(std::move(task)); }
  /// Waits for the end of all tasks that run_later() and spawn() started.
  Task<> wait_until_idle() {
    for (std::size_t rounds = 0; scope_.running() > idle_task_count_; ++rounds)
      co_await back_off(rounds);
  }

 private:
  static Task<> act(std::function<void()> action, std::size_t rounds) {
    while (rounds-- > 0) co_await yield();
    action();
  }

  Scope& scope_;
  std::size_t idle_task_count_;
};

/// The origin of the cancellation in one run.
enum class CancelOrigin : std::uint8_t {
  loop_turn,   ///< a turn of the case's loop, after all ready work; the loop never sleeps
  timer,       ///< a timer of the case's loop, which may sleep until then
  other_core,  ///< the other core, which wakes the loop
};

/// A CancelInjector cancels one run at a given step. Step 0 cancels before the task begins. A
/// later step cancels after that number of loop turns, or after a time that doubles with each
/// step. The ready queue may contain a completed operation at that moment.
/// Threads: the thread of its loop.
/// Lifetime: shorter than the lifetime of its environment.
class CancelInjector : loop::Runnable {
 public:
  static constexpr std::size_t never_fires = static_cast<std::size_t>(-1);
  static constexpr std::size_t timed_steps = 10;  ///< number of steps that cancel after a delay

  CancelInjector(SweepEnvironment& env, CancelOrigin origin, std::size_t step)
      : loop::Runnable(&run), env_(env), loop_(env.loop()), origin_(origin), step_(step) {}

  /// Runs `task` until it ends. The task must end soon after the injector has fired.
  template <class T>
  Task<T> run_with_cancel(Task<T> task) {
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
  /// Returns true if the injector fired before the task ended.
  bool fired() const noexcept { return source_.cancelled(); }

 private:
  void begin();
  Task<> end();
  Task<> fire_after_delay();
  static void run(loop::Runnable& self);

  SweepEnvironment& env_;
  Loop& loop_;
  CancelOrigin origin_;
  CancelSource source_;
  std::size_t step_;
  bool pending_ = false;
  bool task_done_ = false;
};

/// A TempDirectory is a folder on the machine that the case runs on, real or simulated. It is
/// empty at first, and the destructor removes it with its content.
/// Threads: one.
class TempDirectory {
 public:
  explicit TempDirectory(const SweepEnvironment& env);
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();
  const std::string& root() const noexcept { return root_; }
  std::string path(std::string_view name) const { return root_ + "/" + std::string(name); }
  void write(std::string_view name, std::string_view text) const;

 private:
  loop::FileSystem& files_;
  std::string root_;
};

/// A Pair holds both ends of one connection.
struct Pair {
  tcp::Stream near;
  tcp::Stream far;
};
Task<Pair> connect_pair();

/// A SweepCase is one awaitable: its name, and a function that cancels it once and checks the
/// outcome.
struct SweepCase {
  std::string_view name;
  Task<> (*run)(CancelInjector& injector, SweepEnvironment& env);
};

/// Returns true if `outcome` is a success. An error must be Errc::cancelled.
template <class T>
bool succeeded(const Result<T>& outcome) {
  if (!outcome) {
    EXPECT_EQ(outcome.error(), Errc::cancelled) << outcome.error().message();
  }
  return outcome.has_value();
}

/// Checks the outcome of an endless operation that a timeout limits. An error must be
/// Errc::timed_out or Errc::cancelled.
template <class T>
void expect_ended(const Result<T>& outcome) {
  if (outcome || outcome.error() == Errc::timed_out) return;
  EXPECT_EQ(outcome.error(), Errc::cancelled) << outcome.error().message();
}

class CancelSweep : public EachBackend {
 protected:
  /// Runs each case twice without cancelling it, and then once for each step of each
  /// CancelOrigin. If the process samples, a quarter of the cases runs; see SweepBudget. Both cores
  /// use at most as many memory blocks after each run as after the runs without cancelling. Core 0
  /// uses at most as many timers.
  void sweep_all(std::span<const SweepCase> cases);
};

/// Runs the sweep in a World: in virtual time, with a seed that decides everything that may vary.
/// Nothing is left on the host at the end.
void sweep_all_in_world(std::span<const SweepCase> all_cases);

}  // namespace weir::tests
