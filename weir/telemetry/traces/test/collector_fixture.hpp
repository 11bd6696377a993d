// A collector on a host of a World, which decodes the spans that it receives.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/compression/decompressor.hpp"
#include "weir/http.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"
#include "weir/telemetry/traces/test/traces_fixture.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// A span as the collector has received it. Ids are in hexadecimal digits.
struct ReceivedSpan {
  std::string service;
  std::string trace_id;
  std::string span_id;
  std::string parent_id;
  std::string name;
  std::string kind;
  std::string status;
  std::string trace_state;
  std::string start;
  std::string end;
  Texts attributes;
  Texts events;

  bool has(std::string_view attribute) const {
    return std::ranges::find(attributes, attribute) != attributes.end();
  }
};

inline std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Returns the first value of a field; empty if there is none.
inline std::string value_of(const Fields& message, std::uint64_t field) {
  const auto found = message.find(field);
  return found == message.end() ? std::string() : found->second.front();
}

/// Returns the spans of an ExportTraceServiceRequest.
inline std::vector<ReceivedSpan> decode_spans(std::string_view request) {
  std::vector<ReceivedSpan> out;
  Fields message = fields_of(request);
  for (const std::string& each : message[1]) {
    Fields resource_spans = fields_of(each);
    std::string service;
    for (const std::string& text : attribute_texts(fields_of(value_of(resource_spans, 1)), 1)) {
      if (text.starts_with("service.name=1:")) service = text.substr(15);
    }
    for (const std::string& scope : resource_spans[2]) {
      Fields scope_spans = fields_of(scope);
      for (const std::string& bytes : scope_spans[2]) {
        Fields span = fields_of(bytes);
        ReceivedSpan made{.service = service,
                          .trace_id = hex_of(value_of(span, 1)),
                          .span_id = hex_of(value_of(span, 2)),
                          .parent_id = hex_of(value_of(span, 4)),
                          .name = value_of(span, 5),
                          .kind = value_of(span, 6),
                          .status = value_of(fields_of(value_of(span, 15)), 3),
                          .trace_state = value_of(span, 3),
                          .start = value_of(span, 7),
                          .end = value_of(span, 8),
                          .attributes = attribute_texts(span, 9),
                          .events = {}};
        for (const std::string& event : span[11])
          made.events.push_back(value_of(fields_of(event), 2));
        out.push_back(std::move(made));
      }
    }
  }
  return out;
}

/// Returns the content of a body in gzip; empty if it is corrupt.
inline std::string unzipped(std::string_view body) {
  auto made = compression::Decompressor::make(compression::Coding::gzip);
  if (!made) return {};
  std::string out;
  Bytes rest = to_bytes(body);
  for (bool complete = false; !complete;) {
    const std::size_t used = out.size();
    out.resize(used + 65536);
    const MutableBytes room(reinterpret_cast<std::byte*>(out.data()) + used, 65536);
    const auto progress = made->decompress(rest, room);
    if (!progress) return {};
    out.resize(used + progress->produced);
    rest = rest.subspan(progress->consumed);
    complete = progress->complete;
  }
  return made->finish() ? out : std::string();
}

/// Answers the requests of exporters, and keeps what it accepts.
class Collector {
 public:
  struct Answer {
    http::Status status = http::Status::ok;
    std::string retry_after = {};
    std::string body = {};
    Duration delay = {};
  };

  /// The main function of the host. It answers the first requests by the script, and the others
  /// with 200.
  sim::MainFunction main() {
    return [this](loop::Platform& platform) {
      http::Router routes;
      routes.post("/v1/traces", [this](http::Request& request) { return receive(request, true); });
      routes.post("/v1/logs", [this](http::Request& request) { return receive(request, false); });
      return http::run(routes, platform, {.endpoint = Endpoint::any(4318)});
    };
  }

  std::vector<Answer> script;
  std::vector<ReceivedSpan> spans;   ///< those that were accepted
  std::vector<std::size_t> batches;  ///< the number of spans of each accepted request
  std::vector<std::string> logs;     ///< the bodies of accepted requests with log records
  std::size_t requests = 0;
  std::string content_type;  ///< of the last request
  std::string authorization;
  std::string content_encoding;
  std::size_t body_bytes = 0;

 private:
  Task<http::Response> receive(http::Request& request, bool traces) {
    auto body = co_await request.body();
    if (!body) co_return http::Response(http::to_status(body.error()));
    content_type = request.header("Content-Type").value_or("");
    authorization = request.header("Authorization").value_or("");
    content_encoding = request.header("Content-Encoding").value_or("");
    body_bytes = body->size();
    const std::string content = content_encoding == "gzip" ? unzipped(*body) : *body;
    const Answer answer = requests < script.size() ? script[requests] : Answer();
    ++requests;
    if (answer.delay > Duration::zero()) std::ignore = co_await sleep(answer.delay);
    if (content_type == "application/json") {
      // The tests of OtlpRequest read it.
    } else if (answer.status == http::Status::ok && traces) {
      std::vector<ReceivedSpan> received = decode_spans(content);
      batches.push_back(received.size());
      std::ranges::move(received, std::back_inserter(spans));
    } else if (answer.status == http::Status::ok) {
      logs.push_back(content);
    }
    http::Response response(answer.status, "application/x-protobuf", http::Body(answer.body));
    if (!answer.retry_after.empty()) response.set_header("Retry-After", answer.retry_after);
    co_return response;
  }
};

/// Returns options of an exporter to the host "collector".
inline TraceOptions collector_options() {
  TraceOptions options;
  options.service_name = "shop";
  options.traces_url = "http://collector:4318/v1/traces";
  options.logs_url = "http://collector:4318/v1/logs";
  return options;
}

/// Returns the main function of a program with a Tracer. `body` runs on the first core, and the
/// program drains when it has ended. `report` gets the counts of the tracer then.
inline sim::MainFunction traced_program(TraceOptions options, TraceReport& report,
                                        std::function<Task<>(Tracer&)> body) {
  return [options = std::move(options), &report, body = std::move(body)](loop::Platform& platform) {
    Tracer tracer(platform, options);
    Runtime runtime(platform, {});
    const int status = runtime.run_on_each_core([&](Scope& scope) -> Task<> {
      const Context context = co_await this_context();
      tracer.start(scope);
      if (context.loop->core() != 0) co_return;
      co_await body(tracer);
      runtime.drain();
    });
    report = tracer.report();
    return status;
  };
}

}  // namespace weir::telemetry
