// What may be called on a thread of a pool, with which arguments, and what comes back.
#pragma once

#include <concepts>
#include <cstddef>
#include <expected>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/result.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// What borrow() makes. It lives as long as what it was made of.
template <class T>
class Borrowed {
 public:
  explicit Borrowed(T&& value) : value_(std::forward<T>(value)) {}
  T&& take() && { return static_cast<T&&>(value_); }

 private:
  T value_;  // maybe a reference
};

/// `pool.run(fn, borrow(x))`: the function gets a reference to x, or x itself where that is a
/// temporary pointer or view. It is a promise: what it refers to outlives the call, and nobody else
/// touches it meanwhile.
template <class T>
Borrowed<T> borrow(T&& value) {
  return Borrowed<T>(std::forward<T>(value));
}

namespace detail {

template <class T>
inline constexpr bool is_wrapped_reference = false;
template <class T>
inline constexpr bool is_wrapped_reference<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool is_wrapped_reference<std::initializer_list<T>> = true;

enum class Pointers { allowed, counted };

/// Whether a T refers to what lives elsewhere, as far as its type tells; it is looked into so deep.
template <class T, Pointers pointers, int depth = 4>
struct RefersElsewhere {
  static constexpr bool find() {
    if constexpr (depth == 0) {
      return false;
    } else if constexpr (std::is_reference_v<T> || is_wrapped_reference<T>) {
      return true;
    } else if constexpr (std::is_pointer_v<T>) {
      return pointers == Pointers::counted && !std::is_function_v<std::remove_pointer_t<T>>;
    } else if constexpr (std::ranges::range<T>) {
      if constexpr (std::ranges::enable_view<T> || std::ranges::enable_borrowed_range<T>) {
        return true;
      } else {
        using Value = std::remove_cv_t<std::ranges::range_value_t<T>>;
        return !std::is_same_v<Value, T> && RefersElsewhere<Value, pointers, depth - 1>::value;
      }
    } else {
      return false;
    }
  }
  static constexpr bool value = find();
};
template <Pointers pointers, int depth, class... Parts>
inline constexpr bool any_refers_elsewhere =
    (RefersElsewhere<std::remove_cv_t<Parts>, pointers, depth>::value || ...);
template <class... T, Pointers pointers, int depth>
struct RefersElsewhere<std::tuple<T...>, pointers, depth>
    : std::bool_constant<any_refers_elsewhere<pointers, depth, T...>> {};
template <class... T, Pointers pointers, int depth>
struct RefersElsewhere<std::variant<T...>, pointers, depth>
    : std::bool_constant<any_refers_elsewhere<pointers, depth, T...>> {};
template <class T, class U, Pointers pointers, int depth>
struct RefersElsewhere<std::pair<T, U>, pointers, depth>
    : std::bool_constant<any_refers_elsewhere<pointers, depth, T, U>> {};
template <class T, Pointers pointers, int depth>
struct RefersElsewhere<std::optional<T>, pointers, depth>
    : std::bool_constant<any_refers_elsewhere<pointers, depth, T>> {};
template <class T, Pointers pointers, int depth>
struct RefersElsewhere<Result<T>, pointers, depth>
    : std::bool_constant<any_refers_elsewhere<pointers, depth, T>> {};

/// An argument as the function gets it.
template <class T>
T&& as_passed(T& value) {
  return std::move(value);
}
template <class T>
T&& as_passed(Borrowed<T>& value) {
  return std::move(value).take();
}
template <class T>
using Passed = decltype(as_passed(std::declval<T&>()));

struct NotCallable {};

template <class Fn, class... Passed>
constexpr auto returned_by() {
  if constexpr (std::is_invocable_v<Fn, std::stop_token, Passed...>) {
    return std::type_identity<std::invoke_result_t<Fn, std::stop_token, Passed...>>{};
  } else if constexpr (std::is_invocable_v<Fn, Passed...>) {
    return std::type_identity<std::invoke_result_t<Fn, Passed...>>{};
  } else {
    return std::type_identity<NotCallable>{};
  }
}

template <class T>
struct PoolResultOf {
  using type = Result<T>;
};
template <class T>
struct PoolResultOf<Result<T>> {
  using type = Result<T>;
};

/// A function that shall run on a thread of a pool, and its arguments.
template <class Fn, class... Args>
struct PoolCall {
  static_assert(
      !any_refers_elsewhere<Pointers::counted, 4, Args...>,
      "an argument of run() is (or holds) a pointer, a reference or a view: what it "
      "refers to could be changed or gone while the pool uses it. Move a value in, such "
      "as a std::string or a std::vector; or, if you know better, write borrow(argument)");
  static_assert(!any_refers_elsewhere<Pointers::counted, 4, Fn>,
                "the function of run() is a std::ref(): move the function itself in");
  using Returned = typename decltype(returned_by<Fn, Passed<Args>...>())::type;
  static constexpr bool takes_stop_token =
      std::is_invocable_v<Fn, std::stop_token, Passed<Args>...>;
  static_assert(
      !std::is_same_v<Returned, NotCallable>,
      "the function of run() cannot be called with these arguments. They are moved in: it "
      "takes them by value, const& or && (after a std::stop_token, if it wants one), "
      "and as T& only what is given as borrow(argument)");
  static_assert(!is_task<Returned>,
                "a coroutine does not block: await it here instead of running it in a pool");
  static_assert(!any_refers_elsewhere<Pointers::allowed, 4, Returned>,
                "the function of run() must return a value: its arguments are gone by then, and so "
                "may be what a reference or a view refers to");
  using type = typename PoolResultOf<
      std::conditional_t<std::is_reference_v<Returned>, void, std::remove_cv_t<Returned>>>::type;
};

}  // namespace detail

/// What `co_await pool.run(fn, args...)` gives: a Result<T> where the function returns a T or a
/// Result<T>.
template <class Fn, class... Args>
using PoolResult = typename detail::PoolCall<Fn, Args...>::type;

}  // namespace weir
