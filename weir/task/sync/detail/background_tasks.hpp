// Tasks of a core that run until the work of all cores has ended, such as an admin server.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// The background tasks of one core. They do not keep the runtime running, and a drain does not
/// wait for them. When the bodies of all cores and their children have ended, the runtime cancels
/// the background tasks, waits for them, and then stops the loops.
/// Threads: the loop's.
/// Lifetime: the tasks may use what outlives the run of the runtime.
class BackgroundTasks : Continuation {
 public:
  /// Calls `ended` when all tasks have ended after end().
  BackgroundTasks(Loop& loop, std::function<void()> ended)
      : Continuation(background_kind), loop_(loop), ended_(std::move(ended)) {}

  /// Returns the background tasks of the core of `loop`; nullptr if no Runtime runs the loop.
  /// Threads: any.
  static BackgroundTasks* find(Loop& loop) noexcept;

  /// Runs `task` until it first waits. The task continues on its own until end() cancels it.
  /// Errors: throws std::bad_alloc.
  void spawn(Task<> task);
  /// Returns true from the first spawn() until all tasks have ended after end().
  bool running() const noexcept { return scope_ != nullptr; }
  /// Cancels the tasks. Requires running().
  void end() { end_.set(); }

 private:
  Task<> wait_for_end(Scope& scope);
  static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<> finished);
  static constexpr Kind background_kind{&completed, nullptr, "background"};

  Loop& loop_;
  std::function<void()> ended_;
  Scope* scope_ = nullptr;  // in the frame of root_
  ManualResetEvent end_;
  std::optional<Task<Result<>>> root_;
};

/// The background tasks of all cores of a runtime. It is a slot of the group.
struct BackgroundTasksOfCores {
  std::vector<BackgroundTasks*> cores;  ///< by Loop::core()
};

}  // namespace weir
