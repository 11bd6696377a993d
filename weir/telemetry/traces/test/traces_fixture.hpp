// A span and a log record with all members, and a reader of Protocol Buffers for tests.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/telemetry/traces/span_data.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"

namespace weir::telemetry {

using Texts = std::vector<std::string>;

/// The values of the fields of a message by their numbers. Numbers are in decimal digits.
using Fields = std::map<std::uint64_t, Texts>;

/// Reads a correct message.
inline Fields fields_of(std::string_view bytes) {
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  const auto fixed = [&](unsigned size) {
    std::uint64_t value = 0;
    for (unsigned byte = 0; byte < size; ++byte) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at++))} << (8 * byte);
    }
    return std::to_string(value);
  };
  Fields fields;
  while (at < bytes.size()) {
    const std::uint64_t tag = varint();
    Texts& values = fields[tag >> 3];
    if ((tag & 7) == 0) {
      values.push_back(std::to_string(varint()));
    } else if ((tag & 7) == 2) {
      const std::uint64_t size = varint();
      values.emplace_back(bytes.substr(at, size));
      at += size;
    } else {
      values.push_back(fixed((tag & 7) == 1 ? 8 : 4));
    }
  }
  return fields;
}

/// Returns "key=field:value" of each attribute in a field of a message.
inline Texts attribute_texts(const Fields& message, std::uint64_t number) {
  Texts texts;
  const auto found = message.find(number);
  if (found == message.end()) return texts;
  for (const std::string& each : found->second) {
    const Fields pair = fields_of(each);
    const Fields value = fields_of(pair.at(2).front());
    const auto& [field, values] = *value.begin();
    std::string text = values.front();
    if (field == 3) text = std::to_string(static_cast<std::int64_t>(std::stoull(text)));
    texts.push_back(pair.at(1).front() + "=" + std::to_string(field) + ":" + text);
  }
  return texts;
}

inline WallTime wall_time(std::int64_t nanoseconds) {
  return WallTime(std::chrono::nanoseconds(nanoseconds));
}

inline Attributes sample_resource() {
  Attributes resource;
  resource.set("service.name", "shop");
  return resource;
}

inline const SpanData& sample_span() {
  static const SpanData made = [] {
    SpanData span;
    span.trace_id = parse_trace_id("0af7651916cd43dd8448eb211c80319c").value();
    span.span_id = parse_span_id("b7ad6b7169203331").value();
    span.parent_id = parse_span_id("0000000000000005").value();
    span.remote_parent = true;
    span.trace_state = "a=1";
    span.name = "GET /users/{id}";
    span.kind = SpanKind::server;
    span.status = SpanStatus::error;
    span.status_message = "timed out";
    span.start = wall_time(1'700'000'000'000'000'001);
    span.end = wall_time(1'700'000'000'000'500'002);
    span.attributes.set("text", "\xffx");
    span.attributes.set("truth", true);
    span.attributes.set("int", -1);
    span.attributes.set("real", 1.5);
    span.attributes.set("", "dropped");
    span.events.push_back({wall_time(1'700'000'000'000'000'100), "retry"});
    span.events.back().attributes.set("n", 2);
    span.dropped_events = 3;
    return span;
  }();
  return made;
}

inline LogData sample_log(std::string logger) {
  LogData log;
  log.time = wall_time(1'700'000'000'000'000'007);
  log.severity = 9;
  log.severity_text = "info";
  log.trace_id = sample_span().trace_id;
  log.span_id = sample_span().span_id;
  log.logger = std::move(logger);
  log.message = "request done";
  log.attributes.set("n", 7);
  return log;
}

}  // namespace weir::telemetry
