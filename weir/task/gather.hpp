// The machinery behind all(), race() and first_ok(): several tasks at once, one waiter.
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <span>

#include "weir/task/task.hpp"

namespace weir::detail {

/// Runs tasks side by side under a cancellation of their own and resumes the awaiting coroutine
/// when all have finished. What the end of one means is decided by `rule`.
class Gather {
 public:
  /// A task's place in the group.
  class Member : public Completion {
   public:
    Member() noexcept : Completion(&Gather::completed) {}

   private:
    friend class Gather;
    Gather* gather_ = nullptr;
    std::size_t index_ = 0;
  };

  /// Called at the end of each task. True: the rest is not needed, cancel it.
  using Rule = bool (*)(void* state, std::size_t index);

  Gather(Rule rule, void* state) noexcept : rule_(rule), state_(state) {}

  /// `co_await gather.run(context, members, start_one)`: starts the tasks in order, and no more
  /// once one has decided the outcome; returns when those that were started have finished.
  /// Cancel: passed on to the tasks; returns when they have finished.
  class Run {
   public:
    using StartOne = void (*)(void* state, std::size_t index, const Context&, Completion&);
    Run(Gather& gather, std::span<Member> members, StartOne start_one) noexcept
        : gather_(gather), members_(members), start_one_(start_one) {}
    bool await_ready() const noexcept { return false; }
    template <HasContext Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      return gather_.start(handle, handle.promise().context(), members_, start_one_);
    }
    void await_resume() const noexcept {}

   private:
    Gather& gather_;
    std::span<Member> members_;
    StartOne start_one_;
  };

 private:
  bool start(std::coroutine_handle<> waiting, const Context& context, std::span<Member> members,
             Run::StartOne start_one);
  static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<>);

  Rule rule_;
  void* state_;
  std::coroutine_handle<> waiting_;
  std::optional<CancelSource> source_;
  std::size_t running_ = 0;
  bool decided_ = false;
};

}  // namespace weir::detail
