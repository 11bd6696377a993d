// The promise of a Task: the memory of its frame, its context and its continuation.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/task/context.hpp"

namespace weir {

template <class T>
class Task;

/// A Continuation is the callback at the end of a task. It lives at least until that end.
class Continuation {
 public:
  /// The callback may destroy `finished`, which is suspended at its end.
  /// Returns: the coroutine to resume next; std::noop_coroutine() to return to the loop.
  using Function = std::coroutine_handle<> (*)(Continuation&, std::coroutine_handle<> finished);
  /// A Kind is a constant that all continuations of a type share. Reports of tasks read it; see
  /// report_tasks().
  struct Kind {
    Function resume;
    /// Returns the suspended coroutine that waits for the end of the task, or nullptr.
    std::coroutine_handle<> (*coroutine)(const Continuation&) = nullptr;
    std::string_view name = {};  ///< what runs the task if no coroutine waits for its end
  };
  /// The Kind of a continuation that belongs to no coroutine.
  template <Function resume>
  static constexpr Kind root_kind{resume, nullptr, {}};
  const Kind& kind() const noexcept { return *kind_; }

 protected:
  explicit Continuation(const Kind& kind) noexcept : kind_(&kind) {}
  /// Sets another kind, before the task begins.
  void set_kind(const Kind& kind) noexcept { kind_ = &kind; }
  ~Continuation() = default;

 private:
  const Kind* kind_;
};

class PromiseBase : public ContextHolder {
 public:
  // Frames come from the pool of the core that makes them; see BlockPool.
  static void* operator new(std::size_t size) { return BlockPool::allocate(size, BlockUse::frame); }
  static void operator delete(void* frame) noexcept { BlockPool::release(frame); }

  /// Sets the context and the continuation. The caller does this before the first resume.
  void begin(const Context& context, Continuation& continuation) noexcept {
    context_ = context;
    continuation_ = &continuation;
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }

  class FinalAwaiter {
   public:
    FinalAwaiter() noexcept {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) noexcept {
      Continuation& continuation = *finished.promise().continuation_;
      return continuation.kind().resume(continuation, finished);
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

 protected:
  // Both are not inline, since their temporaries would take a word of every frame.
  /// Stores the exception that is being handled.
  static void keep_exception(std::exception_ptr& exception) noexcept;
  [[noreturn]] static void throw_on(const std::exception_ptr& exception);
};

template <class T>
class Promise : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <std::convertible_to<T> U = T>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  void unhandled_exception() noexcept { keep_exception(exception_); }

  /// Moves the value out, or throws what the task threw. It is called once, after the end.
  T take() {
    if (exception_ != nullptr) throw_on(exception_);
    return std::move(*value_);
  }
  const std::exception_ptr& exception() const noexcept { return exception_; }
  /// Returns the value, which exists if there is no exception.
  const T& value() const noexcept { return *value_; }

 private:
  std::optional<T> value_;
  std::exception_ptr exception_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { keep_exception(exception_); }
  void take() {
    if (exception_ != nullptr) throw_on(exception_);
  }
  const std::exception_ptr& exception() const noexcept { return exception_; }

 private:
  std::exception_ptr exception_;
};

}  // namespace weir
