// The data of a span that has ended, and of a log record, before they are exported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/telemetry/traces/attributes.hpp"

namespace weir::telemetry {

/// The role of a span. The values are those of OTLP.
enum class SpanKind : std::uint8_t {
  internal = 1,  ///< work inside of this program
  server = 2,    ///< an answer to a request of another program
  client = 3,    ///< a request to another program
  producer = 4,  ///< a message that another program handles later
  consumer = 5,  ///< the handling of such a message
};

/// The outcome of a span. The values are those of OTLP.
enum class SpanStatus : std::uint8_t { unset = 0, ok = 1, error = 2 };

/// Something that happened at one time during a span.
struct SpanEvent {
  WallTime time;
  std::string name;
  Attributes attributes = {};
};

/// SpanData is one operation of a trace, with its begin and its end.
struct SpanData {
  static constexpr std::size_t name_max = 1024;  ///< bytes; the rest is cut
  static constexpr std::size_t events_max = 32;

  TraceId trace_id = {};
  SpanId span_id = {};
  SpanId parent_id = {};  ///< zeros for the first span of a trace
  bool remote_parent = false;
  bool random_id = false;  ///< true if the trace id is random (W3C Trace Context Level 2)
  SpanKind kind = SpanKind::internal;
  SpanStatus status = SpanStatus::unset;
  std::uint32_t dropped_events = 0;
  WallTime start;
  WallTime end;
  std::string name;
  std::string status_message;
  std::string trace_state;
  Attributes attributes;
  std::vector<SpanEvent> events;

  SpanData* next = nullptr;  ///< the next span of a queue
  unsigned queue = 0;        ///< the queue that counts the span

  /// Returns the bytes of memory that the span occupies.
  std::size_t bytes() const noexcept {
    std::size_t sum = sizeof(*this) + name.capacity() + status_message.capacity() +
                      trace_state.capacity() + attributes.bytes();
    for (const SpanEvent& each : events) {
      sum += sizeof(each) + each.name.capacity() + each.attributes.bytes();
    }
    return sum;
  }
};

/// LogData is one log record in the data model of OpenTelemetry's logs.
struct LogData {
  WallTime time;
  std::uint8_t severity = 0;  ///< SeverityNumber, from 1 to 24
  TraceId trace_id = {};      ///< zeros if the record belongs to no trace
  SpanId span_id = {};
  std::string severity_text;
  std::string logger;
  std::string message;
  Attributes attributes;

  LogData* next = nullptr;  ///< the next record of a queue
  unsigned queue = 0;       ///< the queue that counts the record

  /// Returns the bytes of memory that the record occupies.
  std::size_t bytes() const noexcept {
    return sizeof(*this) + severity_text.capacity() + logger.capacity() + message.capacity() +
           attributes.bytes();
  }
};

}  // namespace weir::telemetry
