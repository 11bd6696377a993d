// Combinators of tasks that run concurrently: all(), settled(), race() and first_ok().
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
  detail::Counter count;
};

// Gather is the common part of all combinators.

/// A Gather runs tasks concurrently under their own cancellation source. It resumes the awaiting
/// coroutine when all started tasks have finished. At the end of each task, the rule says
/// whether the outcome of the group is decided.
class Gather {
 public:
  /// A Member is the continuation of one task of the group.
  class Member : public Continuation {
   public:
    Member() noexcept : Continuation(Gather::member_kind) {}

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
  static std::coroutine_handle<> waiting_for(const Continuation& self) noexcept;
  static const Continuation::Kind member_kind;

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

/// Moves the outcome out of a finished task, or throws its exception.
template <class T>
typename AsResult<T>::type take_outcome(const typename Task<T>::Handle& handle) {
  if constexpr (std::is_void_v<T>) {
    handle.promise().take();
    return {};
  } else {
    return handle.promise().take();
  }
}

constexpr std::size_t no_index = static_cast<std::size_t>(-1);

/// A TaskTuple refers to tasks of several types: those of all() and settled().
template <class... T>
struct TaskTuple {
  explicit TaskTuple(Task<T>&... each) noexcept : tasks(each...) {}

  std::tuple<Task<T>&...> tasks;
  std::size_t chosen = no_index;  // the task whose failure or exception is the outcome

  /// Calls `function.operator()<T>(task)` for the task at `index`.
  template <class Function>
  void at(std::size_t index, Function function) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == index ? function.template operator()<T>(std::get<I>(tasks)) : void()), ...);
    }(std::index_sequence_for<T...>());
  }

  static void start_one(void* opaque, std::size_t index, const Context& context,
                        Continuation& continuation) {
    static_cast<TaskTuple*>(opaque)->at(
        index, [&]<class Each>(Task<Each>& task) { task.start(context, continuation); });
  }
  static bool stop_at_failure(void* opaque, std::size_t index) {
    auto& self = *static_cast<TaskTuple*>(opaque);
    self.at(index, [&]<class Each>(Task<Each>& task) {
      if (has_failed<Each>(task.handle())) self.chosen = index;
    });
    return self.chosen != no_index;
  }
  /// Stores the first task that throws. No outcome stops the others.
  static bool never_stop(void* opaque, std::size_t index) {
    auto& self = *static_cast<TaskTuple*>(opaque);
    if (self.chosen == no_index && self.has_thrown(index)) self.chosen = index;
    return false;
  }

  bool has_thrown(std::size_t index) {
    bool thrown = false;
    at(index, [&]<class Each>(Task<Each>& task) {
      thrown = task.handle().promise().exception() != nullptr;
    });
    return thrown;
  }
  void count_dropped(Loop& loop) {
    for (std::size_t index = 0; index < sizeof...(T); ++index) {
      if (index != chosen && has_thrown(index)) DroppedExceptions::of(loop).count.add();
    }
  }
};

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
  detail::TaskTuple<T...> group(tasks...);
  std::array<detail::Gather::Member, sizeof...(T)> members;
  detail::Gather gather(&detail::TaskTuple<T...>::stop_at_failure, &group);
  co_await detail::Gather::Run(gather, members, &detail::TaskTuple<T...>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  if (group.chosen != detail::no_index) {
    std::error_code error;
    group.at(group.chosen, [&]<class Each>(Task<Each>& task) {
      error = detail::take_error<Each>(task.handle());
    });
    co_return fail(error);
  }
  co_return std::tuple<typename detail::Unwrapped<T>::type...>(
      detail::take_value<T>(tasks.handle())...);
}

/// Runs all tasks concurrently, each in the order given until it first waits, and returns when all
/// have finished. A failure cancels no other task.
/// Returns: a tuple of the outcomes: a Result<T> for a Task<T> and for a Task<Result<T>>.
/// Errors: none of its own. If tasks throw, the first exception is thrown again when all tasks have
/// finished; the others are counted and dropped.
/// Cancel: passed to each task. A task that succeeds nevertheless keeps its value.
template <class... T>
Task<std::tuple<typename detail::AsResult<T>::type...>> settled(Task<T>... tasks) {
  detail::TaskTuple<T...> group(tasks...);
  std::array<detail::Gather::Member, sizeof...(T)> members;
  detail::Gather gather(&detail::TaskTuple<T...>::never_stop, &group);
  co_await detail::Gather::Run(gather, members, &detail::TaskTuple<T...>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  group.at(group.chosen, []<class Each>(Task<Each>& task) {
    static_cast<void>(detail::take_outcome<Each>(task.handle()));  // throws
  });
  co_return std::tuple<typename detail::AsResult<T>::type...>(
      detail::take_outcome<T>(tasks.handle())...);
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

  /// Stores the first task that throws. No outcome stops the others.
  static bool never_stop(void* opaque, std::size_t index) {
    auto& self = *static_cast<Group*>(opaque);
    const bool thrown = self.tasks[index].handle().promise().exception() != nullptr;
    if (thrown && self.chosen == no_index) self.chosen = index;
    return false;
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

/// Runs any number of tasks of one type, as settled() does for a list of tasks.
/// Returns: the outcomes in the order of the tasks.
/// Errors: none of its own. The first exception of a task is thrown again.
/// Cancel: passed to each task. A task that succeeds nevertheless keeps its value.
template <class T>
Task<std::vector<typename detail::AsResult<T>::type>> settled(std::vector<Task<T>> tasks) {
  detail::Group<T> group;
  group.tasks = std::move(tasks);
  std::vector<detail::Gather::Member> members(group.tasks.size());
  detail::Gather gather(&detail::Group<T>::never_stop, &group);
  co_await detail::Gather::Run(gather, members, &detail::Group<T>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  if (group.chosen != detail::no_index) static_cast<void>(group.take_chosen());  // throws
  std::vector<typename detail::AsResult<T>::type> outcomes;
  outcomes.reserve(group.tasks.size());
  for (Task<T>& task : group.tasks) outcomes.push_back(detail::take_outcome<T>(task.handle()));
  co_return outcomes;
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
