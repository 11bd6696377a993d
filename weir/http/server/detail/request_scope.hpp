// The scope of the tasks of one request.
#pragma once

#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

/// The scope that Request::scope() returns. Its tasks have the trace of the request.
/// Threads: its loop's.
/// Lifetime: no task of it runs when it is destroyed (asserted).
struct RequestScope {
  RequestScope(const Context& parent, const TraceContext& trace) noexcept
      : cancel(parent.cancel), scope(make_context(parent, trace), OnFailure::isolate) {}

  CancelSource cancel;
  Scope scope;

 private:
  Context make_context(const Context& parent, const TraceContext& trace) noexcept {
    cancel.set_trace(&trace);
    return {parent.loop, &cancel};
  }
};

}  // namespace weir::http
