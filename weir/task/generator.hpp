// A Generator<T> is a coroutine that yields values one at a time and may wait between them.
#pragma once

#include <cassert>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/task/detail/promise.hpp"
#include "weir/task/task.hpp"

namespace weir {

template <class T>
class Generator;

/// GeneratorPromise is the promise of a Generator's coroutine.
template <class T>
class GeneratorPromise : public PromiseBase {
 public:
  Generator<T> get_return_object() noexcept;
  /// A YieldCopy keeps a copy of the value in the generator's frame while the frame is suspended.
  class YieldCopy : public FinalAwaiter {
   public:
    explicit YieldCopy(const T& value) : copy_(value) {}
    std::coroutine_handle<> await_suspend(std::coroutine_handle<GeneratorPromise> self) noexcept {
      self.promise().value_ = std::addressof(copy_);
      return FinalAwaiter::await_suspend(self);
    }

   private:
    T copy_;
  };

  // The yielded value stays in the generator's frame, which is suspended until the value has been
  // taken. The task that awaits next() resumes directly, as after the end of an awaited task.
  FinalAwaiter yield_value(T&& value) noexcept {
    value_ = std::addressof(value);
    return {};
  }
  YieldCopy yield_value(const T& value)
    requires std::is_copy_constructible_v<T>
  {
    return YieldCopy(value);
  }
  FinalAwaiter yield_value(const std::unexpected<std::error_code>& failure) noexcept {
    error_ = failure.error();
    assert(error_ && "fail() without an error");
    return {};
  }
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

  T* take_value() noexcept { return std::exchange(value_, nullptr); }
  std::error_code error() const noexcept { return error_; }
  const std::exception_ptr& exception() const noexcept { return exception_; }

 private:
  T* value_ = nullptr;
  std::exception_ptr exception_;
  std::error_code error_;
};

/// A Generator makes each value when a task asks for it with next():
///
///   Generator<Row> rows(Table& table) {
///     for (auto row = co_await table.first(); ; row = co_await table.next()) {
///       if (!row) co_yield fail(row.error());  // does not return
///       if (row->last()) co_return;
///       co_yield std::move(*row);
///     }
///   }
///
/// `co_yield value` yields a value; it copies the value unless it is an rvalue.
/// `co_yield fail(error)` ends the generator with an error. `co_return` ends it without one. An
/// exception is thrown to the task that awaits next(). The coroutine runs only while a task
/// awaits next(), on the loop of that task and under its cancellation. A generator may be moved
/// while no task awaits it (asserted).
/// Threads: those of one loop.
/// Lifetime: the generator outlives each wait for next() (asserted). Destroying it at a co_yield
/// destroys its variables. Parameters by reference must live until then.
template <class T>
class [[nodiscard]] Generator {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>);

 public:
  using promise_type = GeneratorPromise<T>;

  Generator(Generator&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), error_(other.error_) {
    assert(!other.running_ && "moved while waited on");
  }
  Generator& operator=(Generator&& other) noexcept {
    assert(!running_ && !other.running_ && "moved while waited on");
    std::swap(handle_, other.handle_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~Generator() {
    assert(!running_ && "destroyed while waited on");
    if (handle_) handle_.destroy();
  }

  class [[nodiscard]] Next : Continuation {
   public:
    explicit Next(Generator& generator) noexcept : Continuation(next_kind), generator_(generator) {}

    bool await_ready() const noexcept { return generator_.handle_ == nullptr; }
    template <HasContext P>
    auto await_suspend(std::coroutine_handle<P> parent) {
      assert(!generator_.running_ && "one next() at a time");
      parent_ = parent;
      generator_.running_ = true;
      generator_.handle_.promise().begin(parent.promise().context(), *this);
      if constexpr (transfers_are_tail_calls) {
        return generator_.handle_;
      } else {
        starting_ = true;
        generator_.handle_.resume();
        starting_ = false;
        return generator_.running_;
      }
    }
    Result<std::optional<T>> await_resume() { return generator_.take(); }

   private:
    static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<>) {
      auto& next = static_cast<Next&>(self);
      next.generator_.running_ = false;
      if (!transfers_are_tail_calls && next.starting_) return std::noop_coroutine();
      return loop::CurrentActivity::transfer_to(next.parent_);
    }
    static std::coroutine_handle<> parent_of(const Continuation& self) noexcept {
      return static_cast<const Next&>(self).parent_;
    }
    static constexpr Kind next_kind{&completed, &parent_of};

    Generator& generator_;
    std::coroutine_handle<> parent_;
    bool starting_ = false;
  };

  /// Runs the generator up to its next co_yield: `auto value = co_await generator.next();`. The
  /// awaiting task resumes directly when the generator yields, in whatever turn that happens.
  /// Returns: a Result<std::optional<T>> with a value, or std::nullopt at the end and in each
  /// call after the end.
  /// Errors: the error that ended the generator, in this call and in each later call. An error is
  /// never reported as the end, so the caller sees that the values are incomplete. An exception
  /// of the generator is thrown here; each later call returns Errc::closed.
  /// Cancel: passed to what the generator awaits; the generator decides how to react. A value
  /// that it yields in spite of the cancellation is returned, so no value is lost.
  Next next() noexcept { return Next(*this); }

 private:
  friend promise_type;
  explicit Generator(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}

  Result<std::optional<T>> take() {
    if (handle_ == nullptr) return end_result();
    if (T* const value = handle_.promise().take_value()) {
      return std::optional<T>(std::move(*value));
    }
    // The coroutine has ended. Free its frame now, with everything that its variables hold.
    const auto frame = std::exchange(handle_, nullptr);
    const std::exception_ptr exception = frame.promise().exception();
    error_ = exception == nullptr ? frame.promise().error() : make_error_code(Errc::closed);
    frame.destroy();
    if (exception != nullptr) std::rethrow_exception(exception);
    return end_result();
  }
  Result<std::optional<T>> end_result() const {
    if (error_) return fail(error_);
    return std::optional<T>();
  }

  std::coroutine_handle<promise_type> handle_;
  std::error_code error_;
  bool running_ = false;
};

template <class T>
Generator<T> GeneratorPromise<T>::get_return_object() noexcept {
  return Generator<T>(std::coroutine_handle<GeneratorPromise>::from_promise(*this));
}

}  // namespace weir
