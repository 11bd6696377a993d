// Operations: the span of a request that is not sampled, and of one that is, with its attributes.
#pragma once

#include <string_view>

#include "bench/gate/operation.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/message/request.hpp"
#include "weir/loop/detail/stall_detector.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/telemetry/traces/http_spans.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::gate {
namespace {

/// The trace context of a request.
struct WorkOfRequest final : TraceContext {
  std::string_view kind() const noexcept override { return "request"; }
  std::string_view id(IdBuffer) const noexcept override { return "1"; }
};

struct NoBody final : http::BodySource {
  Task<Result<Bytes>> read_piece() override { co_return Bytes(); }
  Task<Result<std::string_view>> collect() override { co_return std::string_view(); }
  const http::Headers& trailers() const noexcept override { return none; }
  os::Address peer_address() const override { return {}; }
  http::Headers none;
};

telemetry::Tracer& tracer_with(const telemetry::Sampler& sampler) {
  static OsPlatform platform;
  telemetry::TraceOptions options;
  options.sampler = sampler;
  options.queue_capacity = 1;  // the others are dropped and freed
  return *new telemetry::Tracer(platform, options);
}

/// Filters one request, on a loop as a server does.
inline Task<> trace_requests_of(telemetry::Tracer& tracer, std::string_view text, unsigned times) {
  const telemetry::TraceRequests filter(tracer);
  const WorkOfRequest work;
  NoBody body;
  http::RequestHead head;
  http::HeadParser parser;
  expect(parser.parse(text, head).kind == http::ParseResult::Kind::complete, "parsing");
  http::Request request(head, body, &work);
  for (; times != 0; --times) {
    use(request);
    expect(!filter.before(request).has_value(), "tracing");
  }
  co_return;
}

/// Measures what trace_requests() adds to a request whose caller sends no traceparent.
[[gnu::noinline, maybe_unused]] void trace_unsampled_request(unsigned times) {
  static telemetry::Tracer& tracer =
      tracer_with(telemetry::Sampler::parent_based(telemetry::Sampler::always_off()));
  run(loop(),
      trace_requests_of(tracer, "GET / HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\n\r\n", times));
}

/// Measures what trace_requests() adds to a request whose caller does not sample it.
[[gnu::noinline, maybe_unused]] void trace_followed_request(unsigned times) {
  static telemetry::Tracer& tracer = tracer_with(telemetry::Sampler());
  run(loop(), trace_requests_of(tracer,
                                "GET / HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\ntraceparent: "
                                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n\r\n",
                                times));
}

/// Measures a whole span below a sampled request, until it is freed.
[[gnu::noinline, maybe_unused]] void record_sampled_span(unsigned times) {
  static telemetry::Tracer& tracer = tracer_with(telemetry::Sampler::always_on());
  static const WorkOfRequest work;
  work.set_span(tracer.begin_trace());
  const loop::CurrentActivity::TraceGuard guard(&work);
  for (; times != 0; --times) {
    telemetry::Span span("GET /users/{id}", telemetry::SpanKind::server);
    span.set_attribute("http.request.method", "GET");
    span.set_attribute("url.scheme", "http");
    span.set_attribute("url.path", "/users/7");
    span.set_attribute("http.route", "/users/{id}");
    span.set_attribute("http.response.status_code", 200);
  }
}

}  // namespace
}  // namespace weir::gate
