// Spans: operations whose duration a program records, and the span of the current task.
//
//     const telemetry::Span span("load user");              // ends with its scope
//     auto user = co_await telemetry::in_span("load user", load(id));
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/task.hpp"
#include "weir/telemetry/traces/span_data.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// Returns the span of the work that this thread does at the moment, such as that of the request
/// whose handler runs; nullptr if there is none.
/// Threads: any.
const ActiveSpan* current_span() noexcept;

/// A Span is one operation of a trace. It begins when it is made, and ends with end() or its
/// destructor. It is recorded only if its trace is sampled. Otherwise it costs a few loads, and its
/// functions do nothing. If there is no memory, the span is dropped and counted.
///
/// A Span does not become the span of the current task. Spans that begin while it exists are its
/// children only if they name it, or if they run in in_span().
/// Threads: one at a time. It may end on another core than that of its begin.
/// Lifetime: its Tracer outlives it.
class Span {
 public:
  /// Begins a span below that of the current task. It records nothing if there is none.
  explicit Span(std::string_view name, SpanKind kind = SpanKind::internal) noexcept;
  /// Begins a span below that of the current task, or the first span of a trace if there is none.
  Span(Tracer& tracer, std::string_view name, SpanKind kind = SpanKind::internal) noexcept;
  /// Begins a span below `parent`.
  Span(const Span& parent, std::string_view name, SpanKind kind = SpanKind::internal) noexcept;
  Span(Span&& other) noexcept = default;
  Span& operator=(Span&&) = delete;
  ~Span() { end(); }

  /// Begins the span of a request with the span `parent` in another program.
  static Span for_request(Tracer& tracer, const ActiveSpan& span, const SpanId& parent,
                          std::string_view name, std::string_view trace_state) noexcept;

  /// Begins the span of work that was queued below `parent` and runs now. It has begun when the
  /// work was queued, and has the event "run" now.
  static Span for_work(Tracer& tracer, const ActiveSpan& parent, const QueuedWork& work) noexcept;

  /// Returns true if the span is sampled and has not ended.
  bool recording() const noexcept { return data_ != nullptr; }
  /// Returns the ids of the span. Those of a span that is not sampled are its parent's.
  const ActiveSpan& active() const noexcept { return active_; }

  /// Changes the name, such as when a route is known.
  void set_name(std::string_view name) noexcept;
  /// Sets an attribute; see Attributes::set().
  template <class T>
  void set_attribute(std::string_view key, const T& value) noexcept {
    if (data_ == nullptr) return;
    try {
      data_->attributes.set(key, value);
    } catch (const std::bad_alloc&) {
      lose();
    }
  }
  /// Adds an event that happens now.
  void add_event(std::string_view name) noexcept;
  void set_status(SpanStatus status, std::string_view message = {}) noexcept;
  /// Sets the status `error`, and the attribute error.type to the category and the value.
  void set_error(std::error_code error) noexcept;
  /// Ends the span now. The functions of the span do nothing afterwards. A span that ends because
  /// of an exception has the status `error`.
  void end() noexcept;

 private:
  Span(Tracer& tracer, const ActiveSpan& active) noexcept : active_(active), tracer_(&tracer) {}
  void begin(const ActiveSpan* parent, std::string_view name, SpanKind kind,
             std::string_view trace_state) noexcept;
  void lose() noexcept;

  ActiveSpan active_;
  Tracer* tracer_ = nullptr;
  std::unique_ptr<SpanData> data_;
  Instant start_{};
  int exceptions_ = 0;  // in flight at the begin
};

/// The trace context of the tasks that run in a span. It is that of the task around them, except
/// for its span.
/// Threads: any for const members.
class SpanContext final : public TraceContext {
 public:
  SpanContext(const TraceContext* outer, const ActiveSpan& span) noexcept : outer_(outer) {
    set_span(span);
  }
  std::string_view kind() const noexcept override;
  std::string_view id(IdBuffer buffer) const noexcept override;
  const void* origin() const noexcept override;
  std::string_view trace_state() const noexcept override;

 private:
  const TraceContext* outer_;
};

namespace detail {

template <class T>
Task<T> run_in_span(Span span, Task<T> task) {
  const Context outer = co_await this_context();
  Span own = std::move(span);  // it is destroyed while an exception passes
  const SpanContext trace(outer.trace(), own.active());
  CancelSource cancel(outer.cancel);
  cancel.set_trace(&trace);
  auto running = in_context(Context{outer.loop, &cancel}, std::move(task));
  if constexpr (std::is_void_v<T>) {
    co_await std::move(running);
  } else {
    T value = co_await std::move(running);
    if constexpr (requires { value.error(); }) {
      if (!value.has_value()) own.set_error(value.error());
    }
    co_return value;
  }
}

}  // namespace detail

/// Runs `task` in a span. Spans, log records and requests of the task then belong to this span. So
/// do those of all that it awaits, on any core and in any pool. The span ends with the task. It has
/// the status `error` if the task returns a Result with an error, or throws.
///
///     auto user = co_await telemetry::in_span(telemetry::Span("load user"), load(id));
///
/// Returns: what the task returns.
/// Errors: those of the task.
/// Cancel: passed on to the task.
template <class T>
Task<T> in_span(Span span, Task<T> task) {
  if (!span.recording()) return task;
  return detail::run_in_span(std::move(span), std::move(task));
}
/// Runs `task` in a new span below that of the current task.
/// Cancel: passed on to the task.
template <class T>
Task<T> in_span(std::string_view name, Task<T> task) {
  return in_span(Span(name), std::move(task));
}

}  // namespace weir::telemetry
