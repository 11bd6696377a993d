// run() runs a task from ordinary code, on a loop that this thread turns until the task ends.
#pragma once

#include <utility>

#include "weir/task/task.hpp"

namespace weir {

namespace detail {

/// The root of the tree of tasks that run() runs. It is no local type of run(), because GCC 12
/// would not accept ended() as an argument of a template.
template <class T>
struct RunRoot : loop::Runnable, Continuation {
  RunRoot(Task<T>& task, const Context& context) noexcept
      : loop::Runnable(&start), Continuation(root_kind<&ended>), task(task), context(context) {}
  static void start(loop::Runnable& self) {
    auto& root = static_cast<RunRoot&>(self);
    root.task.start(root.context, root);
  }
  static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
    auto& root = static_cast<RunRoot&>(self);
    root.finished = true;
    root.context.loop->backend().wake();  // end the wait of this turn
    return std::noop_coroutine();
  }
  Task<T>& task;
  Context context;
  bool finished = false;
};

}  // namespace detail

/// Runs `task` on `loop` and turns the loop on this thread until the task has finished. It is for
/// tests, tools and programs that embed one loop; a coroutine uses co_await. Code that runs on
/// the loop may cancel `cancel`, if it is given.
/// Returns: the value of the task, or throws what the task threw.
template <class T>
T run(Loop& loop, Task<T> task, CancelSource* cancel = nullptr) {
  detail::RunRoot<T> root(task, Context{&loop, cancel});
  loop.ready(root);
  while (!root.finished) loop.turn();
  return task.handle().promise().take();
}

}  // namespace weir
