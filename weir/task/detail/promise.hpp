// The promise behind Task: where its frame lives, what it knows, and who is told of its end.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/task/context.hpp"

namespace weir {

template <class T>
class Task;

/// Who is told that a task has finished. Lives at least until then.
class Completion {
 public:
  /// Returns the coroutine to go on with, std::noop_coroutine() to return to the loop. It may
  /// destroy `finished`, which is suspended at its end.
  using Function = std::coroutine_handle<> (*)(Completion&, std::coroutine_handle<> finished);

 protected:
  explicit Completion(Function completed) noexcept : completed_(completed) {}
  ~Completion() = default;

 private:
  friend class PromiseBase;
  Function completed_;
};

class PromiseBase : public ContextHolder {
 public:
  // Frames come from the memory of the core that makes them; see BlockPool.
  static void* operator new(std::size_t size) { return BlockPool::allocate(size, BlockUse::frame); }
  static void operator delete(void* frame) noexcept { BlockPool::release(frame); }

  /// Before the first resume.
  void begin(const Context& context, Completion& completion) noexcept {
    context_ = context;
    completion_ = &completion;
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }

  class FinalAwaiter {
   public:
    FinalAwaiter() noexcept {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) noexcept {
      Completion& completion = *finished.promise().completion_;
      return completion.completed_(completion, finished);
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

 protected:
  // Not inline: their temporaries would take a word of every frame.
  /// Stores the exception that is being handled.
  static void keep_exception(std::exception_ptr& exception) noexcept;
  [[noreturn]] static void throw_on(const std::exception_ptr& exception);

 private:
  Completion* completion_ = nullptr;
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

  /// The value, moved out; or throws what the task threw. Once, after the end.
  T take() {
    if (exception_ != nullptr) throw_on(exception_);
    return std::move(*value_);
  }
  const std::exception_ptr& exception() const noexcept { return exception_; }
  /// Valid without an exception.
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
