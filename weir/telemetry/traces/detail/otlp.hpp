// Messages of OTLP, the protocol that sends spans and log records to a collector (OTLP 1.5).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/telemetry/traces/attributes.hpp"
#include "weir/telemetry/traces/span_data.hpp"

namespace weir::telemetry {

/// The encoding of the messages of OTLP over HTTP.
enum class OtlpEncoding : std::uint8_t { protobuf, json };

/// Returns an ExportTraceServiceRequest with the spans of a list that SpanData::next links.
/// `resource` describes this program.
std::string encode_spans(const Attributes& resource, const SpanData* first, OtlpEncoding encoding);
/// Returns an ExportLogsServiceRequest with the records of a list that LogData::next links.
std::string encode_logs(const Attributes& resource, const LogData* first, OtlpEncoding encoding);

/// The partial success of an ExportTraceServiceResponse or ExportLogsServiceResponse.
struct ExportResponse {
  std::uint64_t rejected = 0;  ///< number of spans or records that the collector did not accept
  std::string message;         ///< its reason, or a warning
};

/// Reads the body of a successful response. An empty body is a full success.
/// Returns: nullopt if it is malformed.
std::optional<ExportResponse> parse_export_response(std::string_view body, OtlpEncoding encoding);

// The encodings in Protocol Buffers, which the functions above use.

/// Log records by the name of their logger.
using LogsByLogger = std::map<std::string_view, std::vector<const LogData*>>;

/// Returns the field `flags` of a span: the flags of its trace context, and if its parent is
/// remote.
constexpr std::uint32_t flags_of(const SpanData& span) noexcept {
  return 0x101U | (span.random_id ? 0x2U : 0) | (span.remote_parent ? 0x200U : 0);
}

std::string protobuf_of_spans(const Attributes& resource, const SpanData* first);
std::string protobuf_of_logs(const Attributes& resource, const LogsByLogger& logs);
std::optional<ExportResponse> read_protobuf_response(std::string_view body);

}  // namespace weir::telemetry
