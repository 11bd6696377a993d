// Combinators of tasks that run concurrently: all(), race() and first_ok().
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weir/task/task.hpp"

namespace weir::detail {

/// The number of exceptions dropped on one core, because the outcome of their tasks was no longer
/// needed. An example is the loser of a race. The thread of the loop counts them.
struct DroppedExceptions {
  /// Returns the count of the core of `loop`.
  /// Threads: any.
  static DroppedExceptions& of(Loop& loop) { return loop.slots().get<DroppedExceptions>(); }
  Counter count;
};

// Gather is the common part of all(), race() and first_ok().

/// A Gather runs tasks concurrently under their own cancellation source. It resumes the awaiting
/// coroutine when all started tasks have finished. At the end of each task, the rule says
/// whether the outcome of the group is decided.
class Gather {
 public:
  /// A Member is the continuation of one task of the group.
  class Member : public Continuation {
   public:
    Member() noexcept : Continuation(&Gather::completed) {}

   private:
    friend class Gather;
    Gather* gather_ = nullptr;
    std::size_t index_ = 0;
  };

  /// The rule is called at the end of each task until it returns true.
  /// Returns: true if the outcome is decided; the other tasks are then cancelled.
  using Rule = bool (*)(void* state, std::size_t index);

  Gather(Rule rule, void* state) noexcept : rule_(rule), state_(state) {}

  /// `co_await Gather::Run(gather, members, start_one)` starts the tasks in order. It starts no
  /// more tasks when a task has decided the outcome. It returns when all started tasks have
  /// finished.
  /// Cancel: passed to the tasks; returns when they have finished.
  class Run {
   public:
    using StartOne = void (*)(void* state, std::size_t index, const Context&, Continuation&);
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
  static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<>);

  Rule rule_;
  void* state_;
  std::coroutine_handle<> waiting_;
  std::optional<CancelSource> source_;
  std::size_t running_ = 0;
  bool decided_ = false;
};

}  // namespace weir::detail

namespace weir {
namespace detail {

template <class T>
struct Unwrapped {
  using type = T;
};
template <>
struct Unwrapped<void> {
  using type = std::monostate;
};
template <class T>
struct Unwrapped<Result<T>> : Unwrapped<T> {};

/// Returns true if the finished task of `handle` threw or returned an error.
template <class T>
bool has_failed(const typename Task<T>::Handle& handle) {
  if (handle.promise().exception() != nullptr) return true;
  if constexpr (is_result<T>) {
    return !handle.promise().value().has_value();
  } else {
    return false;
  }
}

/// Moves the value out of a task that succeeded.
template <class T>
typename Unwrapped<T>::type take_value(const typename Task<T>::Handle& handle) {
  if constexpr (std::is_void_v<T> || std::is_same_v<T, Result<>>) {
    return {};
  } else if constexpr (is_result<T>) {
    return std::move(*handle.promise().take());
  } else {
    return handle.promise().take();
  }
}

/// Returns the error of a task that failed, or throws its exception.
template <class T>
std::error_code take_error(const typename Task<T>::Handle& handle) {
  if constexpr (is_result<T>) {
    return handle.promise().take().error();
  } else {
    handle.promise().take();
    return {};
  }
}

constexpr std::size_t no_index = static_cast<std::size_t>(-1);

}  // namespace detail

/// Runs all tasks concurrently. It starts each in the order given and runs it until it first
/// waits. The first failure cancels the other tasks, and the tasks that were not started do not
/// run. It returns when all started tasks have finished. Exceptions after the first failure are
/// counted and dropped.
/// Returns: a tuple of the values, with std::monostate for a task without a value.
/// Errors: the first failure; an exception is thrown again.
/// Cancel: passed to each task.
template <class... T>
Task<Result<std::tuple<typename detail::Unwrapped<T>::type...>>> all(Task<T>... tasks) {
  struct State {
    explicit State(Task<T>&... each) noexcept : tasks(each...) {}
    std::tuple<Task<T>&...> tasks;
    std::size_t failed = detail::no_index;
  } state(tasks...);
  const auto rule = [](void* opaque, std::size_t index) {
    auto& self = *static_cast<State*>(opaque);
    const bool failed = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((I == index && detail::has_failed<T>(std::get<I>(self.tasks).handle())) || ...);
    }(std::index_sequence_for<T...>());
    if (failed) self.failed = index;
    return failed;
  };
  const auto count_dropped = [&state](Loop& loop) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I != state.failed && std::get<I>(state.tasks).handle().promise().exception() != nullptr
            ? detail::DroppedExceptions::of(loop).count.add()
            : void()),
       ...);
    }(std::index_sequence_for<T...>());
  };
  const auto start_one = [](void* opaque, std::size_t index, const Context& context,
                            Continuation& continuation) {
    auto& self = *static_cast<State*>(opaque);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == index ? std::get<I>(self.tasks).start(context, continuation) : void()), ...);
    }(std::index_sequence_for<T...>());
  };
  std::array<detail::Gather::Member, sizeof...(T)> members;
  detail::Gather gather(rule, &state);
  co_await detail::Gather::Run(gather, members, start_one);
  const Context context = co_await this_context();
  count_dropped(*context.loop);
  std::error_code error;
  if (state.failed != detail::no_index) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == state.failed ? void(error = detail::take_error<T>(std::get<I>(state.tasks).handle()))
                          : void()),
       ...);
    }(std::index_sequence_for<T...>());
    co_return fail(error);
  }
  co_return std::tuple<typename detail::Unwrapped<T>::type...>(
      detail::take_value<T>(tasks.handle())...);
}

namespace detail {

/// A Group holds tasks of one type: those of race(), first_ok() and the forms that take a vector.
template <class T>
struct Group {
  std::vector<Task<T>> tasks;
  std::size_t chosen = no_index;

  static void start_one(void* opaque, std::size_t index, const Context& context,
                        Continuation& continuation) {
    static_cast<Group*>(opaque)->tasks[index].start(context, continuation);
  }
  static bool stop_at_failure(void* opaque, std::size_t index) {
    auto& self = *static_cast<Group*>(opaque);
    if (!has_failed<T>(self.tasks[index].handle())) return false;
    self.chosen = index;
    return true;
  }
  static bool stop_at_first(void* opaque, std::size_t index) {
    static_cast<Group*>(opaque)->chosen = index;
    return true;
  }
  /// Stores the task that finished last, until a task succeeds.
  static bool stop_at_success(void* opaque, std::size_t index) {
    auto& self = *static_cast<Group*>(opaque);
    self.chosen = index;
    return !has_failed<T>(self.tasks[index].handle());
  }

  void count_dropped(Loop& loop) const {
    for (std::size_t index = 0; index < tasks.size(); ++index) {
      const auto& promise = tasks[index].handle().promise();
      if (index != chosen && promise.exception() != nullptr) {
        DroppedExceptions::of(loop).count.add();
      }
    }
  }
  T take_chosen() { return tasks[chosen].handle().promise().take(); }
};

template <class T>
Task<T> run_group(std::vector<Task<T>> tasks, Gather::Rule rule) {
  assert(!tasks.empty());
  Group<T> group;
  group.tasks = std::move(tasks);
  std::vector<Gather::Member> members(group.tasks.size());
  Gather gather(rule, &group);
  co_await Gather::Run(gather, members, &Group<T>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  co_return group.take_chosen();
}

template <class T, class... Rest>
std::vector<Task<T>> to_vector(Task<T> first, Rest... rest) {
  std::vector<Task<T>> tasks;
  tasks.reserve(1 + sizeof...(rest));
  tasks.push_back(std::move(first));
  (tasks.push_back(std::move(rest)), ...);
  return tasks;
}

}  // namespace detail

/// Runs any number of tasks of one type, as all() does for a list of tasks.
/// Returns: the values in the order of the tasks.
/// Errors: the first failure; an exception is thrown again.
/// Cancel: passed to each task.
template <class T>
Task<Result<std::vector<typename detail::Unwrapped<T>::type>>> all(std::vector<Task<T>> tasks) {
  detail::Group<T> group;
  group.tasks = std::move(tasks);
  std::vector<detail::Gather::Member> members(group.tasks.size());
  detail::Gather gather(&detail::Group<T>::stop_at_failure, &group);
  co_await detail::Gather::Run(gather, members, &detail::Group<T>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  if (group.chosen != detail::no_index) {
    co_return fail(detail::take_error<T>(group.tasks[group.chosen].handle()));
  }
  std::vector<typename detail::Unwrapped<T>::type> values;
  values.reserve(group.tasks.size());
  for (Task<T>& task : group.tasks) values.push_back(detail::take_value<T>(task.handle()));
  co_return values;
}

/// Runs all tasks concurrently until the first one finishes, and cancels the others. It then
/// waits for the others and drops what they return or throw. It takes at least one task
/// (asserted).
/// Returns: the outcome (value, error or exception) of the task that finishes first.
/// Cancel: passed to each task.
template <class T>
Task<T> race(std::vector<Task<T>> tasks) {
  return detail::run_group(std::move(tasks), &detail::Group<T>::stop_at_first);
}
template <class T, std::same_as<Task<T>>... Rest>
Task<T> race(Task<T> first, Rest... rest) {
  return race(detail::to_vector(std::move(first), std::move(rest)...));
}

/// Runs all tasks concurrently until the first one succeeds, and cancels the others. It then
/// waits for the others. It takes at least one task (asserted).
/// Returns: the first success; the last failure if all tasks fail.
/// Cancel: passed to each task.
template <class T>
Task<Result<T>> first_ok(std::vector<Task<Result<T>>> tasks) {
  return detail::run_group(std::move(tasks), &detail::Group<Result<T>>::stop_at_success);
}
template <class T, std::same_as<Task<Result<T>>>... Rest>
Task<Result<T>> first_ok(Task<Result<T>> first, Rest... rest) {
  return first_ok(detail::to_vector(std::move(first), std::move(rest)...));
}

}  // namespace weir
