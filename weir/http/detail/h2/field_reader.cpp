#include "weir/http/detail/h2/field_reader.hpp"

#include <array>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

/// The bytes of names: tokens without letters in upper case.
consteval std::array<bool, 256> make_name_bytes() {
  std::array<bool, 256> bytes{};
  for (std::size_t each = 0; each < bytes.size(); ++each) {
    const auto character = static_cast<char>(each);
    bytes[each] = is_in(character, CharClass::token) && to_lower(character) == character;
  }
  return bytes;
}

constexpr std::array<bool, 256> name_bytes = make_name_bytes();

bool is_field_name(std::string_view name) noexcept {
  bool valid = !name.empty();
  for (const char each : name) valid &= name_bytes[static_cast<unsigned char>(each)];
  return valid;
}

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

// The HeadParser rejects the other control characters.
bool is_valid_h2_value(std::string_view value) noexcept {
  if (value.empty()) return true;
  if (is_space(value.front()) || is_space(value.back())) return false;
  const char* const end = value.data() + value.size();
  for (const char* position = value.data();; ++position) {
    position = find_stop(value.data(), position, end,
                         [](const SimdBlock& block) { return block.controls(); });
    if (position == end) return true;
    if (*position == '\0' || *position == '\r' || *position == '\n') return false;
  }
}

bool is_valid_h2_field(const HpackDecoder::Field& field) noexcept {
  return (field.static_index != 0 || is_field_name(field.name)) && is_valid_h2_value(field.value) &&
         !is_connection_field(field.name, field.value);
}

FieldReader::FieldReader(const Limits& limits, std::size_t more)
    : limits_{list_max(limits.list_bytes_max), limits.headers_max},
      memory_(new char[memory(limits.list_bytes_max, more)]) {}

HpackDecoder FieldReader::decoder_of(HpackTable& table, Bytes block,
                                     std::uint32_t list_bytes_max) noexcept {
  const std::size_t scratch_size = HpackDecoder::scratch_size(limits_.list_bytes_max);
  return {table, block, list_bytes_max, {memory_.get(), scratch_size}};
}

HpackDecoder FieldReader::begin(HpackTable& table, Bytes block) noexcept {
  result_ = {};
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

void FieldReader::fail(Kind kind, ParseError error) noexcept {
  result_ = {kind, error};
}

FieldsResult FieldReader::read_trailers(HpackTable& table, Bytes block, Headers& trailers) {
  HpackDecoder decoder = begin(table, block);
  std::uint32_t count = 0;
  HpackDecoder::Step step;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const Field& field = decoder.field();
    if (failed()) continue;  // the rest of the block still changes the table
    if (field.name.starts_with(':') || !is_valid_h2_field(field)) {
      fail(Kind::malformed);
    } else if (is_forbidden_trailer(field.name)) {
      fail(Kind::rejected, ParseError::forbidden_trailer);
    } else if (++count > limits_.headers_max) {
      fail(Kind::rejected, ParseError::too_many_trailers);
    } else if (!trailers.add(field.name, field.value)) {
      fail(Kind::rejected, ParseError::bad_header_value);
    }
  }
  finish(step, decoder, ParseError::trailers_too_long);
  return result_;
}

FieldsResult FieldReader::skip(HpackTable& table, Bytes block) {
  const bool valid = decoder_of(table, block, 0).next() == HpackDecoder::Step::end;
  return {valid ? Kind::complete : Kind::invalid_block};
}

}  // namespace weir::http
