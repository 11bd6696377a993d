// Subscribers that are made from functions: handlers, task handlers and interceptors.
#pragma once

#include <cassert>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/base/detail/function_type.hpp"
#include "weir/event/detail/subscriber.hpp"
#include "weir/event/detail/subscriber_table.hpp"
#include "weir/loop/contract/detail/work_observer.hpp"
#include "weir/task/scope.hpp"

namespace weir {

struct EventHandlerOptions {
  /// The only source to handle; the default handles events of any source or none.
  EventSource from = {};
};

/// Options of task handlers.
struct EventTaskOptions {
  EventSource from = {};  ///< The only source to handle, as in EventHandlerOptions.
  /// True if tasks of the handler do not overlap. The handler stores only the latest event while a
  /// task runs, and handles that event when the task has finished.
  bool coalesce = false;
  /// The maximum number of tasks of this handler that run at the same time. The handler drops an
  /// event beyond this limit and counts it. A handler with `coalesce` runs at most one task.
  std::size_t concurrency_max = 1024;
};

namespace detail {

/// The event type of a function that does not name its event.
struct NoEvent {};

template <class Taken>
struct FirstParameter {
  using type = NoEvent;
};
template <class E, class... More>
struct FirstParameter<Parameters<E, More...>> {
  using type = std::remove_cvref_t<E>;
};

template <class F>
constexpr auto event_of() {
  if constexpr (std::is_void_v<FunctionTypeOf<F>>) {
    return FirstParameter<void>();
  } else {
    return FirstParameter<typename FunctionTypeOf<F>::ParameterTypes>();
  }
}
/// The type of the first parameter of a function, or of an object with one operator(), without
/// const and reference.
template <class F>
using EventOf = typename decltype(event_of<F>())::type;

/// Does not compile if T is NoEvent or cannot be an event.
template <class T>
constexpr void check_event() {
  static_assert(!std::is_same_v<T, NoEvent>,
                "a handler is a function, or an object with one operator(), whose first parameter "
                "is the event: overloaded and generic functions do not name their event");
  static_assert(EventValue<T>,
                "an event is an object that is moved and destroyed without throwing");
}

/// A handler that runs synchronously.
template <class T, class Fn>
class FunctionHandler final : public EventHandler {
 public:
  FunctionHandler(Fn function, const EventHandlerOptions& options)
      : EventHandler(options.from), function_(std::move(function)) {}
  void handle(const void* event) override { std::invoke(function_, *static_cast<const T*>(event)); }

 private:
  Fn function_;
};

/// Begins the work of a task that handles an event, for the span of the handler's call.
/// Returns: nullptr if there is no such span, or it is not sampled.
std::unique_ptr<WorkObserver::Running> begin_event_task(Loop& loop, const EventType& type) noexcept;
/// Runs a task with the trace of `observed`, which ends with the task.
/// Cancel: passed on to the task.
Task<> run_event_task(std::unique_ptr<WorkObserver::Running> observed, Task<> task);

/// A handler that copies each event and spawns a task for it in a scope. If it coalesces and a
/// task is running, that task handles the event next.
template <class T, class Fn>
class TaskHandler final : public EventHandler {
 public:
  TaskHandler(Scope& scope, Fn function, const EventTaskOptions& options)
      : EventHandler(options.from),
        scope_(scope),
        function_(std::move(function)),
        coalesce_(options.coalesce),
        concurrency_max_(options.concurrency_max) {}

  void handle(const void* event) override {
    const T& latest = *static_cast<const T*>(event);
    if (coalesce_ && running_ != 0) {
      pending_.emplace(latest);
    } else if (running_ >= concurrency_max_) {
      table()->counters().dropped.add();
    } else {
      scope_.spawn(run_events(SubscriberRef<TaskHandler>(*this), latest,
                              begin_event_task(scope_.loop(), event_type<T>)));
    }
  }

 private:
  /// Counts one task in `running_`, also if the coroutine frame is destroyed before its end.
  class RunGuard {
   public:
    explicit RunGuard(TaskHandler& task) noexcept : task_(task) { ++task_.running_; }
    ~RunGuard() { --task_.running_; }
    RunGuard(const RunGuard&) = delete;
    RunGuard& operator=(const RunGuard&) = delete;

   private:
    TaskHandler& task_;
  };

  static Task<> run_events(SubscriberRef<TaskHandler> self, T event,
                           std::unique_ptr<WorkObserver::Running> observed) {
    const RunGuard guard(*self.operator->());
    std::optional<T> next(std::move(event));
    while (next) {
      if (observed == nullptr) [[likely]] {
        co_await self->run_once(*next);
      } else {
        auto running = run_event_task(std::move(observed), self->run_once(*next));
        co_await std::move(running);
      }
      next.reset();
      if (!self->pending_) co_return;
      // A stored event is dropped if the registration has ended or the scope was cancelled.
      if (!self->ended() && !self->scope_.cancelled()) next.emplace(std::move(*self->pending_));
      self->pending_.reset();
    }
  }

  Task<> run_once(T& event) {
    std::exception_ptr thrown;
    std::error_code error;
    try {
      using Value = TaskValue<std::invoke_result_t<Fn&, T>>;
      static_assert(std::is_void_v<Value> || std::is_same_v<Value, Result<>>,
                    "a task handler returns a Task<> or a Task<Result<>>");
      if constexpr (std::is_void_v<Value>) {
        co_await std::invoke(function_, std::move(event));
      } else {
        const Result<> result = co_await std::invoke(function_, std::move(event));
        if (!result) error = result.error();
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    if (error == Errc::cancelled && scope_.cancelled()) co_return;
    if (error || thrown != nullptr) report(error, thrown);
  }

  void report(std::error_code error, const std::exception_ptr& thrown) {
    if (table() != nullptr) {
      table()->report_failure(event_type<T>, error, thrown);
    } else {
      log_event_failure(scope_.loop(), event_type<T>, error, thrown);
    }
  }

  Scope& scope_;
  Fn function_;
  std::optional<T> pending_;  // arrived while a task was running
  std::size_t running_ = 0;
  bool coalesce_;
  std::size_t concurrency_max_;
};

template <class T>
const T& event_as(const AnyEvent& event) noexcept {
  if constexpr (std::is_same_v<T, AnyEvent>) {
    return event;
  } else {
    return *event.as<T>();
  }
}

template <class T, class Fn>
class BeforeInterceptor final : public EventInterceptor {
 public:
  explicit BeforeInterceptor(Fn function) : function_(std::move(function)) {}
  EventVerdict before(const AnyEvent& event) override {
    return std::invoke(function_, event_as<T>(event));
  }

 private:
  Fn function_;
};

template <class T, class Fn>
class AfterInterceptor final : public EventInterceptor {
 public:
  explicit AfterInterceptor(Fn function) : function_(std::move(function)) {}
  void after(const AnyEvent& event, const EventOutcome& outcome) override {
    if constexpr (std::is_invocable_v<Fn&, const T&, const EventOutcome&>) {
      std::invoke(function_, event_as<T>(event), outcome);
    } else {
      std::invoke(function_, event_as<T>(event));
    }
  }

 private:
  Fn function_;
};

}  // namespace detail
}  // namespace weir
