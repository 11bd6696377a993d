// One look-up shared by all tasks that request the same name at the same time.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <utility>

#include "weir/net/dns/detail/name_cache.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::dns {

/// Runs a look-up task while at least one other task waits for its result. A cancelled waiter
/// leaves. The last waiter to leave cancels the look-up task and waits for its end.
/// Threads: its loop's.
/// Lifetime: each waiter holds a reference.
class SharedLookup : Continuation {
 public:
  using ResultPtr = std::shared_ptr<const LookupResult>;
  /// SharedLookup calls its Owner once, when the task has ended or is about to be cancelled. No
  /// further task may join the look-up after this call.
  class Owner {
   public:
    virtual void on_finished(SharedLookup& lookup) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  /// Lifetime: the owner outlives every waiter.
  SharedLookup(Owner& owner, Question question, Task<ResultPtr> task) noexcept
      : Continuation(lookup_kind),
        owner_(owner),
        question_(std::move(question)),
        task_(std::move(task)) {}
  SharedLookup(const SharedLookup&) = delete;
  SharedLookup& operator=(const SharedLookup&) = delete;
  ~SharedLookup();

  const Question& question() const noexcept { return question_; }
  /// Starts the task. The first waiter calls it once, before any task waits. The look-up task may
  /// have ended when this function returns.
  void start(Loop& loop);

  /// Waits for the result of the look-up task. Rethrows an exception of that task.
  /// Returns: the result; one with Errc::cancelled after a cancellation.
  /// Cancel: resumes from the loop's ready queue if other tasks wait. The last waiter cancels the
  /// look-up task, waits for its end and returns its result.
  static Task<ResultPtr> wait(std::shared_ptr<SharedLookup> lookup);

 private:
  /// The awaiter of the last waiter. It cannot be cancelled.
  class LastWaiter : public Waiter {
   public:
    explicit LastWaiter(SharedLookup& lookup) noexcept : lookup_(lookup) {}
    bool await_ready() const noexcept { return lookup_.ended_.is_set(); }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      set_coroutine(handle);
      lookup_.last_waiter_ = this;
    }
    void await_resume() const noexcept {}
    void complete() noexcept { resume_later(); }

   private:
    SharedLookup& lookup_;
  };

  static std::coroutine_handle<> on_completed(Continuation& self, std::coroutine_handle<>);
  static constexpr Kind lookup_kind{&on_completed, nullptr, "host name"};
  ResultPtr result();

  Owner& owner_;
  Question question_;
  Task<ResultPtr> task_;
  CancelSource cancel_;
  ManualResetEvent ended_;
  std::size_t waiters_ = 0;
  LastWaiter* last_waiter_ = nullptr;
};

}  // namespace weir::dns
