#include "weir/http/detail/h2/field_reader.hpp"

#include <algorithm>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

/// Returns true for the fields that describe a connection of HTTP/1.1.
bool is_connection_field(std::string_view name, std::string_view value) noexcept {
  switch (name.size()) {
    case 2:
      return name == "te" && !equals_ignoring_case(value, "trailers");
    case 7:
      return name == "upgrade";
    case 10:
      return name == "connection" || name == "keep-alive";
    case 16:
      return name == "proxy-connection";
    case 17:
      return name == "transfer-encoding";
    default:
      return false;
  }
}

}  // namespace

FieldReader::FieldReader(const Limits& limits, std::size_t more)
    : limits_{list_max(limits.list_bytes_max), limits.trailers_max, limits.trailers_bytes_max},
      memory_(new char[memory(limits.list_bytes_max, more)]) {}

HpackDecoder FieldReader::decoder_of(HpackTable& table, Bytes block,
                                     std::uint32_t list_bytes_max) noexcept {
  const std::size_t scratch_size = HpackDecoder::scratch_size(limits_.list_bytes_max);
  return {table, block, list_bytes_max, {memory_.get(), scratch_size}};
}

HpackDecoder FieldReader::begin(HpackTable& table, Bytes block) noexcept {
  result_ = {};
  repeated_.table = nullptr;
  text_end_ = text_start();
  return decoder_of(table, block, limits_.list_bytes_max);
}

bool FieldReader::finish(HpackDecoder::Step step, const HpackDecoder& decoder,
                         ParseError exceeded) noexcept {
  if (step == HpackDecoder::Step::error) {
    fail(Kind::invalid_block);
    return false;
  }
  if (!failed() && decoder.exceeded()) fail(Kind::rejected, exceeded);
  return true;
}

void FieldReader::note_block(const HpackTable& table, Bytes block,
                             const HpackDecoder& decoder) noexcept {
  if (failed() || decoder.changed_table() || block.size() > repeated_.block.size()) return;
  repeated_.table = &table;
  repeated_.size = block.size();
  std::ranges::copy(block, repeated_.block.begin());
}

void FieldReader::fail(Kind kind, ParseError error) noexcept {
  result_ = {kind, error};
}

// The memory before a name or value can be read. find_stop() is faster for short texts then.

/// Returns true if a name, which was copied to the memory of the reader, is a token in lower case.
bool FieldReader::is_valid_name(std::string_view name) const noexcept {
  const char* const end = name.data() + name.size();
  for (const char* position = name.data();; ++position) {
    position = find_stop(memory_.get(), position, end,
                         [](const SimdBlock& block) { return block.not_lower_name(); });
    if (position == end) return !name.empty();
    if (!is_in(*position, CharClass::token) || to_lower(*position) != *position) return false;
  }
}

bool FieldReader::is_valid_value(std::string_view value) const noexcept {
  if (value.empty()) return true;
  if (is_space(value.front()) || is_space(value.back())) return false;
  const char* const end = value.data() + value.size();
  for (const char* position = value.data();; ++position) {
    position = find_stop(memory_.get(), position, end,
                         [](const SimdBlock& block) { return block.controls(); });
    if (position == end) return true;
    if (*position == '\0' || *position == '\r' || *position == '\n') return false;
  }
}

void FieldReader::write_field(const Field& field) noexcept {
  const char* const name = text_end_;
  write_line(field.name, field.value);
  const char* const value_end = text_end_ - line_end.size();
  constexpr std::uint8_t first_header = 15;  // pseudo-header fields are before it
  const bool valid =
      (field.static_index >= first_header || is_valid_name({name, field.name.size()})) &&
      is_valid_value({value_end - field.value.size(), field.value.size()}) &&
      !is_connection_field(field.name, field.value);
  if (!valid) fail(Kind::malformed);
}

FieldsResult FieldReader::read_trailers(HpackTable& table, Bytes block, Headers& trailers) {
  HpackDecoder decoder = begin(table, block);
  std::uint32_t count = 0;
  std::size_t bytes = 0;  // of the lines in HTTP/1.1
  HpackDecoder::Step step;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const Field& field = decoder.field();
    if (failed()) continue;  // the rest of the block still changes the table
    write_field(field);
    if (failed()) continue;
    constexpr std::size_t separator = 2;
    bytes += field.name.size() + separator + field.value.size();
    if (is_forbidden_trailer(field.name)) {
      fail(Kind::rejected, ParseError::forbidden_trailer);
    } else if (++count > limits_.trailers_max) {
      fail(Kind::rejected, ParseError::too_many_trailers);
    } else if (bytes > limits_.trailers_bytes_max) {
      fail(Kind::rejected, ParseError::trailers_too_long);
    } else if (!trailers.add(field.name, field.value)) {
      fail(Kind::rejected, ParseError::bad_header_value);
    }
  }
  finish(step, decoder, ParseError::trailers_too_long);
  return result_;
}

FieldsResult FieldReader::skip(HpackTable& table, Bytes block) {
  repeated_.table = nullptr;
  const bool valid = decoder_of(table, block, 0).next() == HpackDecoder::Step::end;
  return {valid ? Kind::complete : Kind::invalid_block};
}

}  // namespace weir::http
