// select() waits for several things and takes only the first one that is available.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "weir/task/detail/wait.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace detail {

/// A SleepWait is a sleep() or sleep_until() as a case of a select().
class SleepWait : public Wait, loop::Timer {
 public:
  using Value = Result<>;
  explicit SleepWait(const Sleep& sleep) noexcept : loop::Timer(&fire), length_(sleep.length()) {}
  explicit SleepWait(const SleepUntil& sleep) noexcept
      : loop::Timer(&fire), deadline_(sleep.deadline()) {}
  SleepWait(SleepWait&& other) noexcept
      : Wait(std::move(other)),
        loop::Timer(&fire),
        length_(other.length_),
        deadline_(other.deadline_) {}

  bool ready() const noexcept { return false; }
  bool due(const Loop& loop) const noexcept { return !length_ && deadline_ <= loop.now(); }
  bool begin(Loop& loop);
  void withdraw() noexcept { cancel(); }
  Value value() const noexcept { return {}; }

 private:
  static void fire(loop::Timer& timer) { static_cast<SleepWait&>(timer).grant(); }

  std::optional<Duration> length_;
  Instant deadline_{};
};

template <std::derived_from<Wait> W>
W as_wait(W wait) {
  return wait;
}
inline SleepWait as_wait(Sleep sleep) noexcept {
  return SleepWait(sleep);
}
inline SleepWait as_wait(SleepUntil sleep) noexcept {
  return SleepWait(sleep);
}
/// An awaitable of a higher floor has a function that returns its wait.
template <class A>
  requires requires(A& awaitable) {
    { awaitable.as_wait() } -> std::derived_from<Wait>;
  }
auto as_wait(A awaitable) {
  return awaitable.as_wait();
}

/// A Timed wait ends at a point in time. select() also checks the time when it begins, since a
/// timer is not enough. Each select() starts a new timer, and a channel that is never empty
/// for long would withdraw it each time before it fires.
template <class W>
concept Timed = requires(W& wait, Loop& loop) {
  { wait.due(loop) } -> std::same_as<bool>;
};

/// A CrossCoreWait may have been posted by another core when select() withdraws it; see Wait.
template <class W>
concept CrossCoreWait = requires(W& wait) {
  { wait.withdraw() } -> std::same_as<bool>;
};

/// The awaiter of a select().
template <class... W>
class SelectAwaiter : CancellableWaiter, WaitObserver {
 public:
  using Value = Result<std::variant<typename W::Value...>>;

  explicit SelectAwaiter(std::tuple<W...>& waits) noexcept
      : CancellableWaiter(select_kind), WaitObserver(&SelectAwaiter::on_granted), waits_(waits) {}

  bool await_ready() {
    if constexpr ((Timed<W> || ...)) return false;  // only the loop knows the time
    return any([this](std::size_t index, auto& wait) { return wait.ready() && choose(index); });
  }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    set_coroutine(handle);
    if constexpr ((Timed<W> || ...)) {
      if (const Ready had = poll_ready(); had != Ready::not_yet) return had == Ready::next_round;
    }
    const bool had = any([this](std::size_t index, auto& wait) {
      wait.set_observer(*this);
      if (!wait.begin(*context().loop)) return choose(index);
      started_ = static_cast<std::uint32_t>(index) + 1;
      return false;
    });
    if (had) return withdraw() != 0;
    return join() || withdraw() != 0;
  }
  Value await_resume() {
    Value value = fail(Errc::cancelled);
    const auto take = [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == chosen_ ? void(value = Value(std::in_place, std::in_place_index<I>,
                                          std::get<I>(waits_).value()))
                     : void()),
       ...);
    };
    take(std::index_sequence_for<W...>());
    return value;
  }

 private:
  static constexpr std::uint32_t none = sizeof...(W);
  enum class Ready : std::uint8_t { not_yet, now, next_round };

  /// Chooses the first case that is ready or due, in the order of the cases.
  Ready poll_ready() {
    Ready at = Ready::not_yet;
    any([&](std::size_t index, auto& wait) {
      if (wait.ready()) {
        at = Ready::now;
      } else if (is_due(wait)) {
        // It returns as after its timer, so a task that is always late lets other tasks run.
        at = Ready::next_round;
        resume_later();
      }
      return at != Ready::not_yet && choose(index);
    });
    return at;
  }
  template <class Case>
  bool is_due([[maybe_unused]] Case& wait) {
    if constexpr (Timed<Case>) return wait.due(*context().loop);
    return false;
  }
  /// Calls `function(index, wait)` for each case, in order, until a call returns true.
  template <class Function>
  bool any(Function function) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (function(I, std::get<I>(waits_)) || ...);
    }(std::index_sequence_for<W...>());
  }
  bool choose(std::size_t index) noexcept {
    chosen_ = static_cast<std::uint32_t>(index);
    return true;
  }
  /// Removes all other cases from their queues before it grants the waiters behind them.
  /// Otherwise such a grant could lead to a second grant of a case of this select().
  /// Returns the number of cases that still have to arrive, because other cores have posted them.
  std::uint32_t withdraw() {
    ended_ = true;
    any([this](std::size_t index, auto& wait) {
      if (is_loser(index) && !withdraw_case(wait)) ++arriving_;
      return false;
    });
    any([this](std::size_t index, auto& wait) {
      if (is_loser(index)) wait.on_withdrawn();
      return false;
    });
    return arriving_;
  }
  template <class Case>
  static bool withdraw_case(Case& wait) {
    if constexpr (CrossCoreWait<Case>) {
      return wait.withdraw();
    } else {
      wait.withdraw();
      return true;
    }
  }
  bool is_loser(std::size_t index) const noexcept { return index < started_ && index != chosen_; }

  static void on_granted(WaitObserver& observer, Wait& granted) {
    auto& self = static_cast<SelectAwaiter&>(observer);
    if (self.ended_) {
      if (--self.arriving_ == 0) self.resume_later();
      return;
    }
    self.leave();
    self.any(
        [&](std::size_t index, Wait& wait) { return &wait == &granted && self.choose(index); });
    if (self.withdraw() == 0) self.resume_later();
  }
  static void cancel(CancelNode& node) {
    auto& self = static_cast<SelectAwaiter&>(node);
    if (self.withdraw() == 0) self.resume_later();
  }
  static constexpr CancelNode::Kind select_kind = SelectAwaiter::waiting_kind(&cancel, "select");

  std::tuple<W...>& waits_;
  std::uint32_t chosen_ = none;
  std::uint32_t started_ = 0;
  std::uint32_t arriving_ = 0;  // losers that other cores have posted to this loop
  bool ended_ = false;          // true after withdraw()
};

}  // namespace detail

/// The awaitable of select().
template <class... W>
class [[nodiscard]] Select {
 public:
  explicit Select(W... waits) : waits_(std::move(waits)...) {}
  detail::SelectAwaiter<W...> operator co_await() && noexcept {
    return detail::SelectAwaiter<W...>(waits_);
  }

 private:
  std::tuple<W...> waits_;
};

/// Waits for several cases and takes exactly one, the first that is available:
///
///   auto first = co_await select(jobs.receive(), quit.wait(), sleep(1s));
///
/// Nothing is received from or sent to a channel whose case loses. A closed channel is available,
/// with its error. If several cases are available immediately, the first in the list wins. A
/// deadline or tick whose time had come when the loop's turn began is one of these; other tasks
/// then run before this task continues. Put a deadline or a tick before a channel that may always
/// have a value.
///
/// A case is any Wait (of events, latches, semaphores, mutexes, channels, intervals, rate
/// limiters), sleep() or sleep_until(). Messages of other cores are cases too: receive() and
/// readable() of a Mailbox, and of a subscription to a Broadcast. race() takes whole tasks.
///
/// The code that grants the first case removes the other cases from their queues immediately. The
/// loop resumes the task from its ready queue, or after its inbox if another core has posted a
/// losing case meanwhile.
/// Returns: a Result<std::variant<...>> of the results of the cases. Its index() is the index of
/// the chosen case: `std::get<0>(*first)` is a Result<Job> here.
/// Errors: Errc::cancelled.
/// Cancel: leaves all queues and resumes from the loop's ready queue, without having taken
/// anything. A case that was granted before the cancellation is returned.
template <class... A>
  requires(sizeof...(A) > 0)
auto select(A... waits) {
  return Select<decltype(detail::as_wait(std::move(waits)))...>(
      detail::as_wait(std::move(waits))...);
}

}  // namespace weir
