// Converts log records to the data model of OpenTelemetry's logs.
#include "weir/telemetry/traces/otlp_log_sink.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "weir/telemetry/traces/trace_headers.hpp"

namespace weir::telemetry {
namespace {

/// Returns the SeverityNumber of a level.
std::uint8_t severity_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace:
      return 1;
    case LogLevel::debug:
      return 5;
    case LogLevel::info:
      return 9;
    case LogLevel::warning:
      return 13;
    case LogLevel::error:
      return 17;
    case LogLevel::off:
      break;
  }
  return 0;
}

/// Takes an id of the record's trace out of its fields. Returns false for another field.
bool take_id(const LogField& field, LogData& log) noexcept {
  const auto* const text = std::get_if<std::string_view>(&field.value);
  if (text == nullptr) return false;
  if (field.key == "trace_id") {
    const auto id = parse_trace_id(*text);
    if (id) log.trace_id = *id;
    return id.has_value();
  }
  if (field.key == "span_id") {
    const auto id = parse_span_id(*text);
    if (id) log.span_id = *id;
    return id.has_value();
  }
  return false;
}

}  // namespace

void OtlpLogSink::write(const LogRecord& record) {
  if (!tracer_.enabled()) return;
  auto log = std::make_unique<LogData>();
  log->time = record.time;
  log->severity = severity_of(record.level);
  log->severity_text = name_of(record.level);
  log->logger = record.logger;
  log->message = record.message;
  for (const LogField& field : record.fields) {
    if (take_id(field, *log)) continue;
    std::visit([&](const auto& value) { log->attributes.set(field.key, value); }, field.value);
  }
  if (record.core != LogRecord::no_core) log->attributes.set("weir.core", record.core);
  tracer_.record(std::move(log));
}

}  // namespace weir::telemetry
