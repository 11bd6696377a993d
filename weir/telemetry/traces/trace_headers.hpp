// The headers traceparent and tracestate, which carry a trace from one program to the next (W3C
// Trace Context).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::telemetry {

/// The value of a header traceparent (W3C Trace Context §3.2).
struct TraceParent {
  static constexpr std::size_t text_size = 55;  ///< bytes of a text of version 00

  TraceId trace_id = {};
  SpanId parent_id = {};  ///< the span of the caller
  bool sampled = false;   ///< true if the caller has recorded the trace
  bool random = false;    ///< true if the trace id is random (Level 2 §3.2.2.5.2)

  /// Returns the value of a header of version 00.
  std::string text() const;
};

/// Reads a traceparent of version 00, or the known part of a later version. All digits are in lower
/// case. The version is not ff, and no id is zero.
/// Returns: nullopt for any other text.
std::optional<TraceParent> parse_traceparent(std::string_view text) noexcept;

/// The value of the headers tracestate (W3C Trace Context §3.3): a list of entries of tracing
/// systems, the newest first.
/// Threads: one at a time.
class TraceState {
 public:
  static constexpr std::size_t entries_max = 32;
  /// Bytes of text(). Entries beyond them are dropped: at first those of more than 128 bytes, then
  /// the last ones.
  static constexpr std::size_t bytes_max = 512;

  TraceState() = default;
  /// Reads the value of a header. Several headers are joined by commas before.
  /// Errors: Errc::bad_input for an invalid or repeated key, an invalid value, or more than
  /// entries_max entries. The whole header is ignored then.
  static Result<TraceState> parse(std::string_view text);

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  /// Returns the value of a key, if it is there.
  /// Lifetime: until the next change.
  std::optional<std::string_view> get(std::string_view key) const noexcept;
  /// Sets the value of a key and makes its entry the first.
  /// Errors: Errc::bad_input for an invalid key or value.
  Result<> set(std::string_view key, std::string_view value);
  /// Returns the value of a header; empty if there is no entry.
  std::string text() const;

 private:
  struct Entry {
    std::string key;
    std::string value;
    std::size_t size() const noexcept { return key.size() + 1 + value.size(); }
  };
  std::vector<Entry> entries_;
};

/// Returns the bytes as hexadecimal digits in lower case.
std::string to_hex(const TraceId& id);
std::string to_hex(const SpanId& id);
/// Reads an id of hexadecimal digits in lower case. Returns nullopt for another text or zeros.
std::optional<TraceId> parse_trace_id(std::string_view text) noexcept;
std::optional<SpanId> parse_span_id(std::string_view text) noexcept;

}  // namespace weir::telemetry
