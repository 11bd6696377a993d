// Running a task from outside: on a loop that this thread turns until the task has finished.
#pragma once

#include <utility>

#include "weir/task/task.hpp"

namespace weir {

/// Runs `task` on `loop`, turning the loop on this thread until the task has finished; gives its
/// value or throws what it threw. For tests, tools and programs that embed one loop; inside a
/// coroutine use co_await. `cancel`, if any, may be cancelled by what runs on the loop.
template <class T>
T run(Loop& loop, Task<T> task, CancelSource* cancel = nullptr) {
  struct Root : Runnable, Completion {
    Root(Task<T>& task, const Context& context) noexcept
        : Runnable(&start), Completion(&ended), task(task), context(context) {}
    static void start(Runnable& self) {
      auto& root = static_cast<Root&>(self);
      root.task.start(root.context, root);
    }
    static std::coroutine_handle<> ended(Completion& self, std::coroutine_handle<>) {
      auto& root = static_cast<Root&>(self);
      root.finished = true;
      root.context.loop->backend().wake();  // this turn has nothing to wait for any more
      return std::noop_coroutine();
    }
    Task<T>& task;
    Context context;
    bool finished = false;
  } root(task, Context{&loop, cancel});
  loop.ready(root);
  while (!root.finished) loop.turn();
  return task.handle().promise().take();
}

}  // namespace weir
