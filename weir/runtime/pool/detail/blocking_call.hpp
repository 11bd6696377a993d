// Checks and calls functions on a thread of a pool, and returns their results to the loop.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <stop_token>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/result.hpp"
#include "weir/runtime/pool/detail/pool_queue.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// A Borrowed is the result of borrow(); see there. It must not outlive its argument.
template <class T>
class Borrowed {
 public:
  explicit Borrowed(T&& value) : value_(std::forward<T>(value)) {}
  T&& take() && { return static_cast<T&&>(value_); }

 private:
  T value_;  // T may be a reference
};

/// `pool.run(fn, borrow(x))` passes a reference to x to the function, or x itself if x is a
/// temporary pointer or view. The caller promises that the referenced object outlives the call
/// and that no other code uses it meanwhile.
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

/// HoldsReference is true if the type T shows that a T refers to another object. It looks into
/// containers, tuples and similar types to a limited depth.
template <class T, Pointers pointers, int depth = 4>
struct HoldsReference {
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
        return !std::is_same_v<Value, T> && HoldsReference<Value, pointers, depth - 1>::value;
      }
    } else {
      return false;
    }
  }
  static constexpr bool value = find();
};
template <Pointers pointers, int depth, class... Parts>
inline constexpr bool any_holds_reference =
    (HoldsReference<std::remove_cv_t<Parts>, pointers, depth>::value || ...);
template <class... T, Pointers pointers, int depth>
struct HoldsReference<std::tuple<T...>, pointers, depth>
    : std::bool_constant<any_holds_reference<pointers, depth, T...>> {};
template <class... T, Pointers pointers, int depth>
struct HoldsReference<std::variant<T...>, pointers, depth>
    : std::bool_constant<any_holds_reference<pointers, depth, T...>> {};
template <class T, class U, Pointers pointers, int depth>
struct HoldsReference<std::pair<T, U>, pointers, depth>
    : std::bool_constant<any_holds_reference<pointers, depth, T, U>> {};
template <class T, Pointers pointers, int depth>
struct HoldsReference<std::optional<T>, pointers, depth>
    : std::bool_constant<any_holds_reference<pointers, depth, T>> {};
template <class T, Pointers pointers, int depth>
struct HoldsReference<Result<T>, pointers, depth>
    : std::bool_constant<any_holds_reference<pointers, depth, T>> {};

/// Returns an argument in the form in which the function receives it.
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

/// A PoolCall checks a function and its arguments and names its result type.
template <class Fn, class... Args>
struct PoolCall {
  static_assert(!any_holds_reference<Pointers::counted, 4, Args...>,
                "an argument of run() is (or holds) a pointer, a reference or a view: what it "
                "refers to could be changed or gone while the pool uses it. Move a value in, such "
                "as a std::string or a std::vector; or write borrow(argument) if the object "
                "outlives the call");
  static_assert(!any_holds_reference<Pointers::counted, 4, Fn>,
                "the function of run() is a std::ref(): move the function itself in");
  using Returned = typename decltype(returned_by<Fn, Passed<Args>...>())::type;
  static constexpr bool takes_stop_token =
      std::is_invocable_v<Fn, std::stop_token, Passed<Args>...>;
  static_assert(
      !std::is_same_v<Returned, NotCallable>,
      "the function of run() cannot be called with these arguments. They are moved in: it "
      "takes them by value, const& or && (after an optional std::stop_token), "
      "and as T& only what is given as borrow(argument)");
  static_assert(!is_task<Returned>,
                "a coroutine does not block: await it here instead of running it in a pool");
  static_assert(!any_holds_reference<Pointers::allowed, 4, Returned>,
                "the function of run() must return a value: its arguments are destroyed when it "
                "returns, so that a reference or a view could dangle");
  using type = typename PoolResultOf<
      std::conditional_t<std::is_reference_v<Returned>, void, std::remove_cv_t<Returned>>>::type;
};

}  // namespace detail

/// PoolResult is the result of `co_await pool.run(fn, args...)`: a Result<T> if the function
/// returns a T or a Result<T>.
template <class Fn, class... Args>
using PoolResult = typename detail::PoolCall<Fn, Args...>::type;

// A call on a thread of a pool, from the co_await to its result.

class PoolThreads;

/// A BlockingJob lives in the frame of the awaiting coroutine. Its pool owns it until its end and
/// guards it by the pool's mutex; posting it to its loop returns it.
/// Threads: its loop's; call(): one of the pool's.
class BlockingJob : public PoolJob, CancellableWaiter {
 public:
  BlockingJob(PoolThreads& threads, std::size_t lane) noexcept
      : CancellableWaiter(pool_kind), threads_(threads), lane_(lane) {}
  BlockingJob(const BlockingJob&) = delete;
  BlockingJob& operator=(const BlockingJob&) = delete;

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    set_coroutine(handle);
    return begin();
  }
  void await_resume() noexcept { leave(); }

 protected:
  virtual ~BlockingJob() = default;
  /// Calls the function, on a thread of the pool.
  virtual void call() noexcept = 0;
  /// Returns the source that asks a running call to stop; without state if the function takes no
  /// token.
  /// Threads: any.
  virtual std::stop_source stop_source() noexcept { return std::stop_source(std::nostopstate); }
  /// Returns the reason why the function was not called; no error if it was called.
  std::error_code rejection() const noexcept { return rejection_; }

 private:
  friend class PoolThreads;
  enum class Phase : std::uint8_t { idle, queued, running, finished };

  bool begin();
  static void on_cancel(CancelNode& node);
  static constexpr Kind pool_kind = waiting_kind(&on_cancel, "pool");
  /// Posts the job to its loop. The job may be destroyed when this returns.
  /// Threads: any.
  void resume_on_owner() { context().loop->post_from_foreign_thread(*this); }
  void make_ready() { resume_later(); }  // on its loop

  PoolThreads& threads_;
  const std::size_t lane_;
  const TraceContext* trace_ = nullptr;  // context of the awaiting task
  std::error_code rejection_;
  // Written under the pool's mutex; on_cancel() reads it without the mutex.
  std::atomic<Phase> phase_{Phase::idle};
};

namespace detail {

/// BlockingCall calls `make`, which takes a const std::stop_token&.
template <class Call, class Make>
class BlockingCall final : public BlockingJob {
 public:
  using Returned = typename Call::Returned;

  BlockingCall(PoolThreads& threads, std::size_t lane, Make& make)
      : BlockingJob(threads, lane), make_(make) {}

  /// Returns the result; called once on the loop, after the end.
  typename Call::type take() {
    if (rejection()) return fail(rejection());
    if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (std::is_void_v<Returned>) {
      return {};
    } else {
      return std::move(*value_);
    }
  }

 private:
  void call() noexcept override {
    try {
      if constexpr (std::is_void_v<Returned>) {
        make_(stop_.get_token());
      } else {
        value_.emplace(make_(stop_.get_token()));
      }
    } catch (...) {
      exception_ = std::current_exception();
    }
  }
  std::stop_source stop_source() noexcept override { return stop_; }

  struct Nothing {};
  Make& make_;
  [[no_unique_address]] std::conditional_t<std::is_void_v<Returned>, Nothing,
                                           std::optional<std::remove_cv_t<Returned>>> value_;
  std::exception_ptr exception_;
  // The stop state is allocated only if the function takes a token.
  std::stop_source stop_ =
      Call::takes_stop_token ? std::stop_source() : std::stop_source(std::nostopstate);
};

/// A separate coroutine, so that the function and its arguments live in its frame.
/// Cancel: the same as for BlockingPool::run().
template <class Fn, class... Args>
Task<PoolResult<Fn, Args...>> run_blocking(PoolThreads& threads, std::size_t lane, Fn fn,
                                           Args... args) {
  using Call = PoolCall<Fn, Args...>;
  const auto make = [&](const std::stop_token& stop) -> typename Call::Returned {
    if constexpr (Call::takes_stop_token) {
      return std::invoke(std::move(fn), stop, as_passed(args)...);
    } else {
      static_cast<void>(stop);
      return std::invoke(std::move(fn), as_passed(args)...);
    }
  };
  BlockingCall<Call, decltype(make)> call(threads, lane, make);
  co_await call;
  co_return call.take();
}

}  // namespace detail
}  // namespace weir
