// Spans around the requests that a server answers and a client sends.
#pragma once

#include <memory>
#include <optional>

#include "weir/http/client/client_limits.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// A filter that begins a span for each request; see trace_requests().
/// Threads: any core.
class TraceRequests {
 public:
  explicit TraceRequests(Tracer& tracer) noexcept : tracer_(&tracer) {}
  std::optional<http::Response> before(http::Request& request) const;

 private:
  void record(http::Request& request, const ActiveSpan& active,
              const SpanId* parent) const noexcept;

  Tracer* tracer_;
};

/// Returns middleware that begins a span for each request: `routes.use(trace_requests(tracer))`.
/// The parent of the span is that of the request's traceparent: any client can so force a recorded
/// span and name the trace. A service with clients that it does not trust sets
/// TraceOptions::sampler to Sampler::public_edge(), which begins a trace of its own for each
/// request. The name of the span is the method and the pattern of the route, and its attributes are
/// those of OpenTelemetry's conventions for HTTP. The span has the status `error` if the response
/// is 500 or more, or if it was not sent whole.
///
/// All that works for the request then belongs to the span: log records, other spans, and requests
/// of a client with a TraceClient. This also holds for a request that is not sampled. It costs no
/// memory and no clock.
/// Lifetime: the tracer outlives the router and its requests.
inline TraceRequests trace_requests(Tracer& tracer) noexcept {
  return TraceRequests(tracer);
}

/// Returns the span of a request that is sampled, for attributes of its handler; nullptr if there
/// is none.
/// Threads: the request's.
/// Lifetime: until the response has been sent or has failed.
Span* span_of(const http::Request& request) noexcept;

/// An observer that begins a span for each request of a client, and sends its ids as traceparent
/// and tracestate:
///
///     telemetry::TraceClient traces(tracer);
///     http::Client client({.observer = &traces});
///
/// The span belongs to the span of the task that sends the request. Without one, it is the first of
/// a trace. It ends when the head of the response arrives, or a WebSocket is open. It has the
/// status `error` if the request fails or the response is 400 or more.
///
/// A reverse_proxy() passes on the headers of its client. A request that has one valid traceparent
/// keeps it and its tracestate, and gets no span. An invalid or repeated traceparent is replaced by
/// the span's ids, and a tracestate without a valid one is removed (W3C Trace Context §4). With
/// Sampler::public_edge() the span's ids replace both in any case; without a span, if
/// TraceOptions::enabled is false, both are removed.
/// Threads: any core.
/// Lifetime: outlives its clients; the tracer outlives it.
class TraceClient final : public http::ClientObserver {
 public:
  explicit TraceClient(Tracer& tracer) noexcept : tracer_(tracer) {}
  std::unique_ptr<Call> begin(http::ClientRequest& request) override;

 private:
  Tracer& tracer_;
};

}  // namespace weir::telemetry
