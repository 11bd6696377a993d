// WorkObserver: sees the work that a pool or an event handler does for a span.
#pragma once

#include <memory>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir {

/// A piece of work that was queued in a span and runs later, on this or another thread.
struct QueuedWork {
  std::string_view name;    ///< name for its span, such as "pool"
  std::string_view detail;  ///< appended to the name after a space, such as a type; may be empty
  Instant queued_at;        ///< time at which the span queued the work
};

/// The creator of an ActiveSpan that is sampled; see observer_of().
/// Threads: any.
class WorkObserver {
 public:
  /// One piece of work that runs. Its destructor is the end of the work.
  class Running {
   public:
    Running() = default;
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    virtual ~Running() = default;
    /// Returns the trace of the work.
    virtual const TraceContext& trace() const noexcept = 0;
  };

  /// Called on the thread that runs the work, when the work begins. `parent` is the span that
  /// queued the work. `outer` is the trace of the work around it, which outlives the result;
  /// nullptr if there is none.
  /// Returns: the object that sees the end; nullptr if none has to.
  virtual std::unique_ptr<Running> begin_work(const TraceContext* outer, const ActiveSpan& parent,
                                              const QueuedWork& work) noexcept = 0;

 protected:
  ~WorkObserver() = default;
};

/// Returns the observer of the work of a span; nullptr if the span is not sampled. The member
/// `tracer` of a sampled span is a WorkObserver.
inline WorkObserver* observer_of(const ActiveSpan& span) noexcept {
  return span.exists && span.sampled ? static_cast<WorkObserver*>(span.tracer) : nullptr;
}
/// Returns true if the work of this trace is observed. `trace` may be nullptr.
inline bool is_observed(const TraceContext* trace) noexcept {
  return trace != nullptr && observer_of(trace->span()) != nullptr;
}

}  // namespace weir
