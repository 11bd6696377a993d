// One look-up for all who want to know the same at the same time.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <utility>

#include "weir/net/dns/detail/name_cache.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::names {

/// Runs a task as long as somebody waits for what comes of it. It belongs to those who do: who is
/// cancelled leaves, and the last one to leave has the task cancelled and waits for its end.
/// Threads: its loop's. Lifetime: held by each who waits.
class SharedLookup : Completion {
 public:
  using Answer = std::shared_ptr<const NameAnswer>;
  /// Told once, when the task has ended or is to be cancelled: nobody can join it any more.
  class Owner {
   public:
    virtual void over(SharedLookup& lookup) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  /// The owner outlives everybody who waits.
  SharedLookup(Owner& owner, NameQuestion question, Task<Answer> task) noexcept
      : Completion(&completed),
        owner_(owner),
        question_(std::move(question)),
        task_(std::move(task)) {}
  SharedLookup(const SharedLookup&) = delete;
  SharedLookup& operator=(const SharedLookup&) = delete;
  ~SharedLookup();

  const NameQuestion& question() const noexcept { return question_; }
  /// Once, before anybody waits, by who will. The task may have ended when it returns.
  void start(Loop& loop);

  /// What the task gives, or throws; Errc::cancelled in it for who was.
  /// Cancel: returns in the loop's next round; the last one waits for the task, which is cancelled
  /// too, and gives what that gives.
  static Task<Answer> wait_for(std::shared_ptr<SharedLookup> lookup);

 private:
  /// The last one's waiting, which cannot be cancelled.
  class End : public Waiter {
   public:
    explicit End(SharedLookup& lookup) noexcept : lookup_(lookup) {}
    bool await_ready() const noexcept { return lookup_.ended_.is_set(); }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      wait_in(handle);
      lookup_.last_ = this;
    }
    void await_resume() const noexcept {}
    void come() noexcept { resume_later(); }

   private:
    SharedLookup& lookup_;
  };

  static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<>);
  Answer answer();

  Owner& owner_;
  NameQuestion question_;
  Task<Answer> task_;
  CancelSource cancel_;
  CoreManualResetEvent ended_;
  std::size_t waiting_ = 0;
  End* last_ = nullptr;
};

}  // namespace weir::names
