// select(): whichever of several waits is granted first, and only that one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "weir/task/sleep.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {
namespace detail {

/// A sleep() or sleep_until() as a case of a select().
class SleepWait : public Wait, Timer {
 public:
  using Value = Result<>;
  explicit SleepWait(const Sleep& sleep) noexcept : Timer(&fire), length_(sleep.length()) {}
  explicit SleepWait(const SleepUntil& sleep) noexcept
      : Timer(&fire), deadline_(sleep.deadline()) {}
  SleepWait(SleepWait&& other) noexcept
      : Wait(std::move(other)), Timer(&fire), length_(other.length_), deadline_(other.deadline_) {}

  bool ready() const noexcept { return false; }
  bool due(const Loop& loop) const noexcept { return !length_ && deadline_ <= loop.now(); }
  bool begin(Loop& loop);
  void withdraw() noexcept { cancel(); }
  Value value() const noexcept { return {}; }

 private:
  static void fire(Timer& timer) { static_cast<SleepWait&>(timer).grant(); }

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

/// A wait that the time ends. Its own timer would not do in a select(): each begins with it anew,
/// and a channel that is never empty for long would withdraw it every time before it fires.
template <class W>
concept Timed = requires(W& wait, Loop& loop) {
  { wait.due(loop) } -> std::same_as<bool>;
};

/// The awaiter of a select().
template <class... W>
class SelectAwaiter : Waiter, CancelNode, WaitOwner {
 public:
  using Value = Result<std::variant<typename W::Value...>>;

  explicit SelectAwaiter(std::tuple<W...>& waits) noexcept
      : CancelNode(&SelectAwaiter::cancel), WaitOwner(&SelectAwaiter::granted), waits_(waits) {}

  bool await_ready() {
    if constexpr ((Timed<W> || ...)) return false;  // only the loop knows the time
    return any([this](std::size_t index, auto& wait) { return wait.ready() && choose(index); });
  }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    wait_in(handle);
    if constexpr ((Timed<W> || ...)) {
      if (const At had = had_at_once(); had != At::not_yet) return had == At::next_round;
    }
    const bool had = any([this](std::size_t index, auto& wait) {
      wait.owned_by(*this);
      if (!wait.begin(*context().loop)) return choose(index);
      begun_ = index + 1;
      return false;
    });
    if (had) {
      withdraw();
      return false;
    }
    if (context().cancel == nullptr) return true;
    if (context().cancelled()) {
      withdraw();
      return false;
    }
    context().cancel->add(*this);
    return true;
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
  static constexpr std::size_t none = sizeof...(W);
  enum class At : std::uint8_t { not_yet, once, next_round };

  /// The first that can be had, in their order, those that are due among them.
  At had_at_once() {
    At at = At::not_yet;
    any([&](std::size_t index, auto& wait) {
      if (wait.ready()) {
        at = At::once;
      } else if (is_due(wait)) {
        at = At::next_round;  // as when its timer fires: a task that is always late lets others run
        resume_later();
      }
      return at != At::not_yet && choose(index);
    });
    return at;
  }
  template <class Case>
  bool is_due([[maybe_unused]] Case& wait) {
    if constexpr (Timed<Case>) return wait.due(*context().loop);
    return false;
  }
  /// Calls `function(index, wait)` for each, in order, until one says yes.
  template <class Function>
  bool any(Function function) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (function(I, std::get<I>(waits_)) || ...);
    }(std::index_sequence_for<W...>());
  }
  bool choose(std::size_t index) noexcept {
    chosen_ = index;
    return true;
  }
  /// Takes all others out of their queues, and only then lets those go on who stood behind them:
  /// nobody can grant a second one in between.
  void withdraw() {
    any([this](std::size_t index, auto& wait) {
      if (is_loser(index)) wait.withdraw();
      return false;
    });
    any([this](std::size_t index, auto& wait) {
      if (is_loser(index)) wait.withdrawn();
      return false;
    });
  }
  bool is_loser(std::size_t index) const noexcept { return index < begun_ && index != chosen_; }

  static void granted(WaitOwner& owner, Wait& granted) {
    auto& self = static_cast<SelectAwaiter&>(owner);
    static_cast<CancelNode&>(self).unlink();
    self.any(
        [&](std::size_t index, Wait& wait) { return &wait == &granted && self.choose(index); });
    self.withdraw();
    self.resume_later();
  }
  static void cancel(CancelNode& node) {
    auto& self = static_cast<SelectAwaiter&>(node);
    self.withdraw();
    self.resume_later();
  }

  std::tuple<W...>& waits_;
  std::size_t chosen_ = none;
  std::size_t begun_ = 0;
};

}  // namespace detail

/// See select().
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

/// `auto first = co_await select(jobs.receive(), quit.wait(), sleep(1s));`: waits for all of them
/// and takes the first that can be had, exactly one: from a channel that lost, nothing is received,
/// into one that lost, nothing is sent. Gives a Result<std::variant<...>> of what each of them
/// gives; its index() tells which one it was: `std::get<0>(*first)` is a Result<Job> here. A closed
/// channel counts as had, with its error. Of several that can be had at once, the one named first;
/// a deadline or a tick whose time had come when the loop's turn began is one of them (then others
/// run before the task goes on), so name it before a channel that may always have something.
/// Takes every Wait (of events, latches, semaphores, mutexes, channels, intervals, rate limiters),
/// sleep() and sleep_until(); for whole tasks there is race().
/// Who grants the first one takes the others out of their queues in the same moment; the loop
/// resumes the task in its next round.
/// Errors: Errc::cancelled.
/// Cancel: leaves all queues and returns in the loop's next round, having taken nothing. What had
/// been granted before is kept: it returns that.
template <class... A>
  requires(sizeof...(A) > 0)
auto select(A... waits) {
  return Select<decltype(detail::as_wait(std::move(waits)))...>(
      detail::as_wait(std::move(waits))...);
}

}  // namespace weir
