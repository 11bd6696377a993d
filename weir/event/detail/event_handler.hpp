// What a function becomes when it is registered for events: a handler, a task or an interceptor.
#pragma once

#include <cassert>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/event/detail/subscriber.hpp"
#include "weir/event/detail/subscriber_table.hpp"
#include "weir/base/detail/function_type.hpp"
#include "weir/task/scope.hpp"

namespace weir {

struct EventHandlerOptions {
  EventSource from = {};  ///< only events of this source; by default of all, and of none
};

/// For handlers that wait.
struct EventTaskOptions {
  EventSource from = {};  ///< as in EventHandlerOptions
  /// While one run is under way, the next waits for it; of the events that come meanwhile only the
  /// latest is kept, and becomes that one more run.
  bool coalesce = false;
  /// So many runs may be under way at once. An event beyond is not given to this handler, and
  /// counted as dropped. With `coalesce` there is never more than one.
  std::size_t running_max = 1024;
};

namespace detail {

/// The event of a function that does not say which it wants.
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
    return FirstParameter<typename FunctionTypeOf<F>::Taken>();
  }
}
/// The first parameter of a function, or of an object with one operator(), without const and
/// reference.
template <class F>
using EventOf = typename decltype(event_of<F>())::type;

/// Does not compile for what does not say which event it wants.
template <class T>
constexpr void check_event() {
  static_assert(!std::is_same_v<T, NoEvent>,
                "a handler is a function, or an object with one operator(), whose first parameter "
                "is the event: overloaded and generic ones do not say which they want");
  static_assert(EventValue<T>,
                "an event is an object that is moved and destroyed without throwing");
}

/// A handler that does not wait.
template <class T, class Fn>
class EventFunction final : public EventHandler {
 public:
  EventFunction(Fn function, const EventHandlerOptions& options)
      : EventHandler(options.from), function_(std::move(function)) {}
  void handle(const void* event) override { std::invoke(function_, *static_cast<const T*>(event)); }

 private:
  Fn function_;
};

/// A handler that waits: each event is copied and becomes a task in a scope, or, while one runs and
/// it coalesces, the next for that task.
template <class T, class Fn>
class EventTask final : public EventHandler {
 public:
  EventTask(Scope& scope, Fn function, const EventTaskOptions& options)
      : EventHandler(options.from),
        scope_(scope),
        function_(std::move(function)),
        coalesce_(options.coalesce),
        running_max_(options.running_max) {}

  void handle(const void* event) override {
    const T& latest = *static_cast<const T*>(event);
    if (coalesce_ && running_ != 0) {
      latest_.emplace(latest);
    } else if (running_ >= running_max_) {
      roster()->counters().dropped.add();
    } else {
      scope_.spawn(runs(EventKeeper<EventTask>(*this), latest));
    }
  }

 private:
  /// This one's share of `running_`, also when the frame is destroyed before its end.
  class Running {
   public:
    explicit Running(EventTask& task) noexcept : task_(task) { ++task_.running_; }
    ~Running() { --task_.running_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    EventTask& task_;
  };

  static Task<> runs(EventKeeper<EventTask> self, T event) {
    const Running running(*self.operator->());
    std::optional<T> next(std::move(event));
    while (next) {
      co_await self->once(*next);
      next.reset();
      if (!self->latest_) co_return;
      // What is kept is not run after the end of the registration or of the scope's patience.
      if (!self->ended() && !self->scope_.cancelled()) next.emplace(std::move(*self->latest_));
      self->latest_.reset();
    }
  }

  Task<> once(T& event) {
    std::exception_ptr thrown;
    std::error_code error;
    try {
      using Value = TaskValue<std::invoke_result_t<Fn&, T>>;
      static_assert(std::is_void_v<Value> || std::is_same_v<Value, Result<>>,
                    "a handler that waits returns a Task<> or a Task<Result<>>");
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
    if (roster() != nullptr) {
      roster()->failed(event_type<T>, error, thrown);
    } else {
      log_event_failure(scope_.loop(), event_type<T>, error, thrown);
    }
  }

  Scope& scope_;
  Fn function_;
  std::optional<T> latest_;  // that came while a run was under way
  std::size_t running_ = 0;
  bool coalesce_;
  std::size_t running_max_;
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
class EventGuard final : public EventInterceptor {
 public:
  explicit EventGuard(Fn function) : function_(std::move(function)) {}
  EventVerdict before(const AnyEvent& event) override {
    return std::invoke(function_, event_as<T>(event));
  }

 private:
  Fn function_;
};

template <class T, class Fn>
class EventWitness final : public EventInterceptor {
 public:
  explicit EventWitness(Fn function) : function_(std::move(function)) {}
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
