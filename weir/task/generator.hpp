// Generator<T>: a coroutine that gives many values, one at a time, and may wait between them.
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

/// The promise behind Generator.
template <class T>
class GeneratorPromise : public PromiseBase {
 public:
  Generator<T> get_return_object() noexcept;
  /// Keeps a copy in the generator's frame while it is suspended.
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

  // What is yielded stays in the generator's frame, which is suspended until it has been taken. Who
  // asked for it goes on directly, as who awaits a task does at the task's end.
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

/// Values that are made when they are asked for:
///
///   Generator<Row> rows(Table& table) {
///     for (auto row = co_await table.first(); ; row = co_await table.next()) {
///       if (!row) co_yield fail(row.error());  // does not come back
///       if (row->last()) co_return;
///       co_yield std::move(*row);
///     }
///   }
///
/// `co_yield value` gives one (copied, unless it is an rvalue), `co_yield fail(error)` ends it with
/// an error, an exception is thrown to who asks, co_return is the end. It runs only while somebody
/// awaits next(): on that task's loop and under its cancellation.
/// Threads: those of one loop. Lifetime: longer than each wait for next() (asserted). Destroying it
/// where it stands, at a co_yield, destroys its variables; parameters by reference must live until
/// then. It may be moved while nobody waits.
template <class T>
class [[nodiscard]] Generator {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>);

 public:
  using promise_type = GeneratorPromise<T>;

  Generator(Generator&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), error_(other.error_) {
    assert(!other.running_ && "moved while somebody waits for it");
  }
  Generator& operator=(Generator&& other) noexcept {
    assert(!running_ && !other.running_ && "moved while somebody waits for it");
    std::swap(handle_, other.handle_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~Generator() {
    assert(!running_ && "destroyed while waited on");
    if (handle_) handle_.destroy();
  }

  class [[nodiscard]] Next : Completion {
   public:
    explicit Next(Generator& generator) noexcept : Completion(&completed), generator_(generator) {}

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
    static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<>) {
      auto& next = static_cast<Next&>(self);
      next.generator_.running_ = false;
      if (!transfers_are_tail_calls && next.starting_) return std::noop_coroutine();
      return Running::go_on(next.parent_);
    }

    Generator& generator_;
    std::coroutine_handle<> parent_;
    bool starting_ = false;
  };

  /// `auto value = co_await generator.next();`: lets it run up to its next co_yield. A
  /// Result<std::optional<T>>: a value, or none at the end, or the error that it ended with; what
  /// it throws is thrown here. So an error is never taken for the end: what came is incomplete.
  /// After the end each further call gives the end, or that error; after an exception Errc::closed.
  /// Resumes directly when the generator yields, in whatever round that happens.
  /// Cancel: passed on to what the generator waits for; it decides what becomes of that. Values are
  /// not lost: one that it yields all the same is returned.
  Next next() noexcept { return Next(*this); }

 private:
  friend promise_type;
  explicit Generator(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}

  Result<std::optional<T>> take() {
    if (handle_ == nullptr) return over();
    if (T* const value = handle_.promise().take_value()) {
      return std::optional<T>(std::move(*value));
    }
    // It will not go on: its frame is freed now, with whatever its variables hold.
    const auto frame = std::exchange(handle_, nullptr);
    const std::exception_ptr exception = frame.promise().exception();
    error_ = exception == nullptr ? frame.promise().error() : make_error_code(Errc::closed);
    frame.destroy();
    if (exception != nullptr) std::rethrow_exception(exception);
    return over();
  }
  Result<std::optional<T>> over() const {
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
