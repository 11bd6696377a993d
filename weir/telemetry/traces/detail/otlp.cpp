// Encodes spans and log records in JSON, and chooses the encoding. OTLP/JSON follows the JSON
// mapping of Protocol Buffers, but ids are hexadecimal and enumerators are numbers.
#include "weir/telemetry/traces/detail/otlp.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <variant>

#include "weir/base/version.hpp"
#include "weir/json/detail/writer.hpp"
#include "weir/json/read.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"

namespace weir::telemetry {
namespace {

/// Writes the members of nested objects and arrays, with the commas between them.
class JsonText {
 public:
  explicit JsonText(std::string& out) noexcept : writer_(out) {}

  void begin(char bracket) {
    separate();
    writer_.put(bracket);
    first_ = true;
  }
  void begin(std::string_view key, char bracket) {
    name(key);
    writer_.put(bracket);
    first_ = true;
  }
  void end(char bracket) {
    writer_.put(bracket);
    first_ = false;
  }
  template <class T>
  void member(std::string_view key, const T& value) {
    name(key);
    writer_.write(value);
  }
  /// Writes a 64-bit integer, which is a string in JSON.
  template <class T>
  void integer(std::string_view key, T value) {
    name(key);
    writer_.put('"');
    writer_.write(value);
    writer_.put('"');
  }
  void time(std::string_view key, WallTime time) {
    const auto since = std::chrono::nanoseconds(time.time_since_epoch()).count();
    integer(key, since > 0 ? static_cast<std::uint64_t>(since) : std::uint64_t{0});
  }
  void finish() { writer_.finish(); }

 private:
  void separate() {
    if (!first_) writer_.put(',');
    first_ = false;
  }
  void name(std::string_view key) {
    separate();
    writer_.write(key);
    writer_.put(':');
  }

  json::StringWriter writer_;
  bool first_ = true;
};

void write(JsonText& out, std::string_view key, const AttributeValue& value) {
  out.begin('{');
  out.member("key", key);
  out.begin("value", '{');
  if (const auto* const text = std::get_if<std::string_view>(&value)) {
    out.member("stringValue", *text);
  } else if (const auto* const truth = std::get_if<bool>(&value)) {
    out.member("boolValue", *truth);
  } else if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    out.integer("intValue", *integer);
  } else {
    // The JSON mapping has texts for numbers that JSON does not have.
    const double number = *std::get_if<double>(&value);
    if (number != number) {
      out.member("doubleValue", std::string_view("NaN"));
    } else if (number - number != 0) {
      out.member("doubleValue", std::string_view(number > 0 ? "Infinity" : "-Infinity"));
    } else {
      out.member("doubleValue", number);
    }
  }
  out.end('}');
  out.end('}');
}

void write(JsonText& out, const Attributes& attributes) {
  if (!attributes.empty()) {
    out.begin("attributes", '[');
    attributes.for_each(
        [&](std::string_view key, const AttributeValue& value) { write(out, key, value); });
    out.end(']');
  }
  if (attributes.dropped() != 0) out.member("droppedAttributesCount", attributes.dropped());
}

void write_scope(JsonText& out, std::string_view name) {
  out.begin("scope", '{');
  out.member("name", name);
  if (name == "weir") out.member("version", std::string_view(version()));
  out.end('}');
}

void write(JsonText& out, const SpanData& span) {
  out.begin('{');
  out.member("traceId", std::string_view(to_hex(span.trace_id)));
  out.member("spanId", std::string_view(to_hex(span.span_id)));
  if (!span.trace_state.empty()) out.member("traceState", std::string_view(span.trace_state));
  if (span.parent_id != SpanId{}) {
    out.member("parentSpanId", std::string_view(to_hex(span.parent_id)));
  }
  out.member("flags", flags_of(span));
  out.member("name", std::string_view(span.name));
  out.member("kind", static_cast<std::uint32_t>(span.kind));
  out.time("startTimeUnixNano", span.start);
  out.time("endTimeUnixNano", span.end);
  write(out, span.attributes);
  if (!span.events.empty()) {
    out.begin("events", '[');
    for (const SpanEvent& each : span.events) {
      out.begin('{');
      out.time("timeUnixNano", each.time);
      out.member("name", std::string_view(each.name));
      write(out, each.attributes);
      out.end('}');
    }
    out.end(']');
  }
  if (span.dropped_events != 0) out.member("droppedEventsCount", span.dropped_events);
  if (span.status != SpanStatus::unset) {
    out.begin("status", '{');
    if (!span.status_message.empty()) {
      out.member("message", std::string_view(span.status_message));
    }
    out.member("code", static_cast<std::uint32_t>(span.status));
    out.end('}');
  }
  out.end('}');
}

void write(JsonText& out, const LogData& record) {
  out.begin('{');
  out.time("timeUnixNano", record.time);
  out.time("observedTimeUnixNano", record.time);
  out.member("severityNumber", std::uint32_t{record.severity});
  out.member("severityText", std::string_view(record.severity_text));
  out.begin("body", '{');
  out.member("stringValue", std::string_view(record.message));
  out.end('}');
  write(out, record.attributes);
  if (record.span_id != SpanId{}) {
    out.member("traceId", std::string_view(to_hex(record.trace_id)));
    out.member("spanId", std::string_view(to_hex(record.span_id)));
  }
  out.end('}');
}

template <class T>
std::string json_of(const T& item) {
  std::string text;
  JsonText out(text);
  write(out, item);
  out.finish();
  return text;
}

/// The members of a response that are read. The JSON mapping permits both forms of a number.
struct JsonPartialSuccess {
  std::optional<std::variant<std::int64_t, std::string>> rejectedSpans;
  std::optional<std::variant<std::int64_t, std::string>> rejectedLogRecords;
  std::optional<std::string> errorMessage;
};
struct JsonExportResponse {
  std::optional<JsonPartialSuccess> partialSuccess;
};

std::uint64_t number_of(const std::optional<std::variant<std::int64_t, std::string>>& value) {
  std::int64_t number = 0;
  if (!value) return 0;
  if (const auto* const text = std::get_if<std::string>(&*value)) {
    std::from_chars(text->data(), text->data() + text->size(), number);
  } else {
    number = *std::get_if<std::int64_t>(&*value);
  }
  return number > 0 ? static_cast<std::uint64_t>(number) : 0;
}

std::optional<ExportResponse> read_json_response(std::string_view body) {
  ExportResponse response;
  if (body.empty()) return response;
  constexpr json::ReadOptions lenient{.unknown_fields = json::UnknownFields::skip,
                                      .text_bytes_max = std::size_t{1} << 20};
  auto read = json::read<JsonExportResponse>(body, lenient);
  if (!read) return std::nullopt;
  if (auto& partial = read->partialSuccess) {
    response.rejected = number_of(partial->rejectedSpans) + number_of(partial->rejectedLogRecords);
    response.message = std::move(partial->errorMessage).value_or("");
  }
  return response;
}

}  // namespace

void OtlpRequest::add(const SpanData& span) {
  if (encoding_ == OtlpEncoding::json) {
    item_ = json_of(span);
  } else {
    item_ = protobuf_of(span);
  }
  append("weir");
}

void OtlpRequest::add(const LogData& record) {
  if (encoding_ == OtlpEncoding::json) {
    item_ = json_of(record);
  } else {
    item_ = protobuf_of(record);
  }
  append(record.logger);
}

/// Appends the item to those of its scope.
void OtlpRequest::append(std::string_view scope) {
  auto found = scopes_.find(scope);
  if (found == scopes_.end()) found = scopes_.emplace(scope, std::string()).first;
  std::string& items = found->second;
  // The memory is allocated before anything changes.
  const std::size_t size = items.size() + item_.size() + 1;
  if (items.capacity() < size) items.reserve(std::max(size, 2 * items.size()));
  if (encoding_ == OtlpEncoding::json && !items.empty()) items += ',';
  items += item_;
  ++count_;
  bytes_ += item_.size();
}

void OtlpRequest::clear() noexcept {
  scopes_.clear();
  count_ = 0;
  bytes_ = 0;
}

std::string OtlpRequest::body(const Attributes& resource) const {
  if (encoding_ == OtlpEncoding::json) return json_body(resource);
  return protobuf_body(resource, scopes_);
}

std::string OtlpRequest::json_body(const Attributes& resource) const {
  const bool spans = signal_ == Signal::spans;
  std::string text;
  {
    JsonText out(text);
    out.begin('{');
    out.begin(spans ? "resourceSpans" : "resourceLogs", '[');
    out.begin('{');
    out.begin("resource", '{');
    write(out, resource);
    out.end('}');
    out.begin(spans ? "scopeSpans" : "scopeLogs", '[');
    out.finish();
  }
  text.reserve(text.size() + bytes_ + count_ + 256 * (scopes_.size() + 1));
  bool first = true;
  for (const auto& [scope, items] : scopes_) {
    if (items.empty()) continue;  // its first item was not added
    std::string head;
    JsonText out(head);
    out.begin('{');
    write_scope(out, scope);
    out.begin(spans ? "spans" : "logRecords", '[');
    out.finish();
    if (!first) text += ',';
    first = false;
    text.append(head).append(items).append("]}");
  }
  return text += "]}]}";
}

std::optional<ExportResponse> parse_export_response(std::string_view body, OtlpEncoding encoding) {
  if (encoding == OtlpEncoding::json) return read_json_response(body);
  return read_protobuf_response(body);
}

}  // namespace weir::telemetry
