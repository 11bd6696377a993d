// Encodes spans and log records in Protocol Buffers.
#include "weir/telemetry/traces/detail/otlp.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/text/detail/protobuf_writer.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/base/version.hpp"

namespace weir::telemetry {
namespace {

using weir::detail::ProtobufWriter;

std::uint64_t nanoseconds_of(WallTime time) noexcept {
  const auto since = std::chrono::nanoseconds(time.time_since_epoch()).count();
  return since > 0 ? static_cast<std::uint64_t>(since) : 0;
}

template <std::size_t N>
std::string_view bytes_of(const std::array<std::uint8_t, N>& id) noexcept {
  return {reinterpret_cast<const char*>(id.data()), N};
}

bool is_zero(const SpanId& id) noexcept {
  return id == SpanId{};
}

/// Appends a text. A string of Protocol Buffers is valid UTF-8, so other bytes become U+FFFD.
void add_text(ProtobufWriter& out, std::uint32_t field, std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto is_valid = [&] { return utf8_length(at, end) != 0; };
  while (at != end && is_valid()) at += utf8_length(at, end);
  if (at == end) return out.add_always(field, text);
  std::string valid(text.data(), at);
  while (at != end) {
    const std::size_t length = utf8_length(at, end);
    valid.append(length == 0 ? std::string_view("\xEF\xBF\xBD") : std::string_view(at, length));
    at += length == 0 ? 1 : length;
  }
  out.add_always(field, valid);
}

/// Appends attributes as the repeated field `field`.
void add_attributes(ProtobufWriter& out, std::uint32_t field, const Attributes& attributes) {
  ProtobufWriter any;
  ProtobufWriter pair;
  attributes.for_each([&](std::string_view key, const AttributeValue& value) {
    any.clear();
    pair.clear();
    if (const auto* const text = std::get_if<std::string_view>(&value)) {
      add_text(any, 1, *text);
    } else if (const auto* const truth = std::get_if<bool>(&value)) {
      any.add_always(2, std::uint64_t{*truth});
    } else if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
      any.add_always(3, static_cast<std::uint64_t>(*integer));
    } else {
      any.add_always(4, *std::get_if<double>(&value));
    }
    add_text(pair, 1, key);
    pair.add(2, any);
    out.add(field, pair);
  });
}

ProtobufWriter resource_message(const Attributes& resource) {
  ProtobufWriter out;
  add_attributes(out, 1, resource);
  return out;
}

ProtobufWriter scope_message(std::string_view name) {
  ProtobufWriter out;
  add_text(out, 1, name);
  if (name == "weir") out.add(2, std::string_view(version()));
  return out;
}

void write(ProtobufWriter& out, const SpanEvent& event) {
  out.add_fixed64(1, nanoseconds_of(event.time));
  add_text(out, 2, event.name);
  add_attributes(out, 3, event.attributes);
  out.add(4, std::uint64_t{event.attributes.dropped()});
}

void write(ProtobufWriter& out, const SpanData& span) {
  out.add(1, bytes_of(span.trace_id));
  out.add(2, bytes_of(span.span_id));
  if (!span.trace_state.empty()) add_text(out, 3, span.trace_state);
  if (!is_zero(span.parent_id)) out.add(4, bytes_of(span.parent_id));
  add_text(out, 5, span.name);
  out.add(6, static_cast<std::uint64_t>(span.kind));
  out.add_fixed64(7, nanoseconds_of(span.start));
  out.add_fixed64(8, nanoseconds_of(span.end));
  add_attributes(out, 9, span.attributes);
  out.add(10, std::uint64_t{span.attributes.dropped()});
  for (const SpanEvent& each : span.events) {
    ProtobufWriter event;
    write(event, each);
    out.add(11, event);
  }
  out.add(12, std::uint64_t{span.dropped_events});
  if (span.status != SpanStatus::unset) {
    ProtobufWriter status;
    add_text(status, 2, span.status_message);
    status.add(3, static_cast<std::uint64_t>(span.status));
    out.add(15, status);
  }
  out.add_fixed32(16, flags_of(span));
}

void write(ProtobufWriter& out, const LogData& record) {
  out.add_fixed64(1, nanoseconds_of(record.time));
  out.add(2, std::uint64_t{record.severity});
  add_text(out, 3, record.severity_text);
  ProtobufWriter body;
  add_text(body, 1, record.message);
  out.add(5, body);
  add_attributes(out, 6, record.attributes);
  out.add(7, std::uint64_t{record.attributes.dropped()});
  if (!is_zero(record.span_id)) {
    out.add(9, bytes_of(record.trace_id));
    out.add(10, bytes_of(record.span_id));
  }
  out.add_fixed64(11, nanoseconds_of(record.time));
}

/// Begins a nested message of `size` bytes, which follow.
void begin_field(ProtobufWriter& out, std::uint32_t field, std::size_t size) {
  out.append_varint(std::uint64_t{field} << 3 | 2);
  out.append_varint(size);
}

/// Returns an item as the field 2 of ScopeSpans or ScopeLogs.
template <class T>
std::string items_field(const T& item) {
  ProtobufWriter message;
  write(message, item);
  ProtobufWriter field;
  field.add(2, message);
  return field.bytes();
}

/// Reads fields of Protocol Buffers.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) noexcept : rest_(bytes) {}

  /// Reads the next field; false at the end and at a malformed field.
  bool next() noexcept {
    bytes = {};
    number = 0;
    if (rest_.empty()) return false;
    std::uint64_t tag = 0;
    if (!varint(tag) || tag >> 3 == 0) return fail();
    field = tag >> 3;
    switch (tag & 7) {
      case 0:
        return varint(number) || fail();
      case 1:
        return take(8) || fail();
      case 2: {
        std::uint64_t size = 0;
        return (varint(size) && take(size)) || fail();
      }
      case 5:
        return take(4) || fail();
      default:
        return fail();
    }
  }
  bool failed() const noexcept { return failed_; }

  std::uint64_t field = 0;
  std::uint64_t number = 0;  // of a varint
  std::string_view bytes;    // of another type

 private:
  bool fail() noexcept {
    failed_ = true;
    return false;
  }
  bool varint(std::uint64_t& value) noexcept {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t size) noexcept {
    if (size > rest_.size()) return false;
    bytes = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(bytes.size());
    return true;
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::string protobuf_of(const SpanData& span) {
  return items_field(span);
}

std::string protobuf_of(const LogData& record) {
  return items_field(record);
}

std::string protobuf_body(const Attributes& resource,
                          const std::map<std::string, std::string, std::less<>>& scopes) {
  struct Part {
    std::string head;  // of the message with the items of a scope
    std::string_view items;
  };
  std::vector<Part> parts;
  ProtobufWriter resource_field;
  resource_field.add(1, resource_message(resource));
  std::size_t size = resource_field.bytes().size();
  for (const auto& [name, items] : scopes) {
    if (items.empty()) continue;  // its first item was not added
    ProtobufWriter scope;
    scope.add(1, scope_message(name));
    ProtobufWriter head;
    begin_field(head, 2, scope.bytes().size() + items.size());
    parts.push_back({.head = head.bytes() + scope.bytes(), .items = items});
    size += parts.back().head.size() + items.size();
  }
  ProtobufWriter begin;
  begin_field(begin, 1, size);
  std::string body;
  body.reserve(begin.bytes().size() + size);
  body.append(begin.bytes()).append(resource_field.bytes());
  for (const Part& each : parts) body.append(each.head).append(each.items);
  return body;
}

std::optional<ExportResponse> read_protobuf_response(std::string_view body) {
  ExportResponse response;
  ProtobufReader outer(body);
  while (outer.next()) {
    if (outer.field != 1) continue;
    ProtobufReader inner(outer.bytes);
    while (inner.next()) {
      if (inner.field == 1 && inner.number >> 63 == 0) response.rejected = inner.number;
      if (inner.field == 2) response.message = inner.bytes;
    }
    if (inner.failed()) return std::nullopt;
  }
  if (outer.failed()) return std::nullopt;
  return response;
}

}  // namespace weir::telemetry
