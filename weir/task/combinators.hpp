// Several tasks at once: all(), race(), first_ok().
#pragma once

#include <array>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weir/task/gather.hpp"

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

/// Whether the finished task behind `handle` threw or returned an error.
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

/// The error of a task that failed; its exception is thrown.
template <class T>
std::error_code take_error(const typename Task<T>::Handle& handle) {
  if constexpr (is_result<T>) {
    return handle.promise().take().error();
  } else {
    handle.promise().take();
    return {};
  }
}

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

}  // namespace detail

/// Runs all tasks at once, each until it first waits, in the order given. Gives a tuple of their
/// values (std::monostate for none), or the first failure: an error as the Result, an exception
/// thrown on; that failure cancels the others. Returns when all have finished.
/// Cancel: passed on to each.
template <class... T>
Task<Result<std::tuple<typename detail::Unwrapped<T>::type...>>> all(Task<T>... tasks) {
  struct State {
    explicit State(Task<T>&... each) noexcept : tasks(each...) {}
    std::tuple<Task<T>&...> tasks;
    std::size_t failed = detail::nobody;
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
            ? loop.count_dropped_exception()
            : void()),
       ...);
    }(std::index_sequence_for<T...>());
  };
  const auto start_one = [](void* opaque, std::size_t index, const Context& context,
                            Completion& completion) {
    auto& self = *static_cast<State*>(opaque);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == index ? std::get<I>(self.tasks).start(context, completion) : void()), ...);
    }(std::index_sequence_for<T...>());
  };
  std::array<detail::Gather::Member, sizeof...(T)> members;
  detail::Gather gather(rule, &state);
  co_await detail::Gather::Run(gather, members, start_one);
  const Context context = co_await this_context();
  count_dropped(*context.loop);
  std::error_code error;
  if (state.failed != detail::nobody) {
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

/// A group of tasks of one type, for the forms that take a vector and for race() and first_ok().
template <class T>
struct Group {
  std::vector<Task<T>> tasks;
  std::size_t chosen = nobody;

  static void start_one(void* opaque, std::size_t index, const Context& context,
                        Completion& completion) {
    static_cast<Group*>(opaque)->tasks[index].start(context, completion);
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
  /// Remembers the last one to finish until one succeeds.
  static bool stop_at_success(void* opaque, std::size_t index) {
    auto& self = *static_cast<Group*>(opaque);
    self.chosen = index;
    return !has_failed<T>(self.tasks[index].handle());
  }

  void count_dropped(Loop& loop) const {
    for (std::size_t index = 0; index < tasks.size(); ++index) {
      const auto& promise = tasks[index].handle().promise();
      if (index != chosen && promise.exception() != nullptr) loop.count_dropped_exception();
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
std::vector<Task<T>> gathered(Task<T> first, Rest... rest) {
  std::vector<Task<T>> tasks;
  tasks.reserve(1 + sizeof...(rest));
  tasks.push_back(std::move(first));
  (tasks.push_back(std::move(rest)), ...);
  return tasks;
}

}  // namespace detail

/// The same for any number of tasks of one type; the values in the order of the tasks.
/// Cancel: passed on to each.
template <class T>
Task<Result<std::vector<typename detail::Unwrapped<T>::type>>> all(std::vector<Task<T>> tasks) {
  detail::Group<T> group;
  group.tasks = std::move(tasks);
  std::vector<detail::Gather::Member> members(group.tasks.size());
  detail::Gather gather(&detail::Group<T>::stop_at_failure, &group);
  co_await detail::Gather::Run(gather, members, &detail::Group<T>::start_one);
  const Context context = co_await this_context();
  group.count_dropped(*context.loop);
  if (group.chosen != detail::nobody) {
    co_return fail(detail::take_error<T>(group.tasks[group.chosen].handle()));
  }
  std::vector<typename detail::Unwrapped<T>::type> values;
  values.reserve(group.tasks.size());
  for (Task<T>& task : group.tasks) values.push_back(detail::take_value<T>(task.handle()));
  co_return values;
}

/// The outcome (value, error or exception) of the task that finishes first; the others are
/// cancelled and waited for, what they return or throw is dropped. At least one task.
/// Cancel: passed on to each.
template <class T>
Task<T> race(std::vector<Task<T>> tasks) {
  return detail::run_group(std::move(tasks), &detail::Group<T>::stop_at_first);
}
template <class T, std::same_as<Task<T>>... Rest>
Task<T> race(Task<T> first, Rest... rest) {
  return race(detail::gathered(std::move(first), std::move(rest)...));
}

/// The first success, or, when all have failed, the last failure; a winner's rivals are cancelled
/// and waited for. At least one task.
/// Cancel: passed on to each.
template <class T>
Task<Result<T>> first_ok(std::vector<Task<Result<T>>> tasks) {
  return detail::run_group(std::move(tasks), &detail::Group<Result<T>>::stop_at_success);
}
template <class T, std::same_as<Task<Result<T>>>... Rest>
Task<Result<T>> first_ok(Task<Result<T>> first, Rest... rest) {
  return first_ok(detail::gathered(std::move(first), std::move(rest)...));
}

}  // namespace weir
