// Messages of OTLP, the protocol that sends spans and log records to a collector (OTLP 1.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "weir/telemetry/traces/attributes.hpp"
#include "weir/telemetry/traces/span_data.hpp"

namespace weir::telemetry {

/// The encoding of the messages of OTLP over HTTP.
enum class OtlpEncoding : std::uint8_t { protobuf, json };

/// One request to a collector, with spans or with log records. Each item is encoded when it is
/// added, so that a turn of a loop encodes only a few.
/// Errors: throws std::bad_alloc. A failed add() changes nothing.
/// Threads: one at a time.
class OtlpRequest {
 public:
  enum class Signal : std::uint8_t { spans, logs };

  OtlpRequest(Signal signal, OtlpEncoding encoding) noexcept
      : signal_(signal), encoding_(encoding) {}

  void add(const SpanData& span);
  /// Adds a log record to those of its logger.
  void add(const LogData& record);
  /// Returns the number of items.
  std::size_t count() const noexcept { return count_; }
  /// Returns the bytes of the encoded items.
  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns the body: an ExportTraceServiceRequest or ExportLogsServiceRequest. `resource`
  /// describes this program.
  std::string body(const Attributes& resource) const;
  /// Removes all items.
  void clear() noexcept;

 private:
  void append(std::string_view scope);
  std::string json_body(const Attributes& resource) const;

  const Signal signal_;
  const OtlpEncoding encoding_;
  std::map<std::string, std::string, std::less<>> scopes_;  // encoded items by their scope
  std::string item_;                                        // the item that is added
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// The partial success of an ExportTraceServiceResponse or ExportLogsServiceResponse.
struct ExportResponse {
  std::uint64_t rejected = 0;  ///< number of spans or records that the collector did not accept
  std::string message;         ///< its reason, or a warning
};

/// Reads the body of a successful response. An empty body is a full success.
/// Returns: nullopt if it is malformed.
std::optional<ExportResponse> parse_export_response(std::string_view body, OtlpEncoding encoding);

// The encodings in Protocol Buffers, which the functions above use.

/// Returns the field `flags` of a span: the flags of its trace context, and if its parent is
/// remote.
constexpr std::uint32_t flags_of(const SpanData& span) noexcept {
  return 0x101U | (span.random_id ? 0x2U : 0) | (span.remote_parent ? 0x200U : 0);
}

/// Returns an item as the field of the message that contains it.
std::string protobuf_of(const SpanData& span);
std::string protobuf_of(const LogData& record);
/// Returns the request with the items of each scope.
std::string protobuf_body(const Attributes& resource,
                          const std::map<std::string, std::string, std::less<>>& scopes);
std::optional<ExportResponse> read_protobuf_response(std::string_view body);

}  // namespace weir::telemetry
