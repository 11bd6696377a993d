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
  struct End : Completion {
    End() noexcept
        : Completion([](Completion& self, std::coroutine_handle<>) -> std::coroutine_handle<> {
            static_cast<End&>(self).reached = true;
            return std::noop_coroutine();
          }) {}
    bool reached = false;
  } end;
  {
    const BlockPool::Use blocks(loop.blocks());
    task.start(Context{&loop, cancel}, end);
  }
  while (!end.reached) loop.turn();
  return task.handle().promise().take();
}

}  // namespace weir
