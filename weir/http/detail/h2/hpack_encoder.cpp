#include "weir/http/detail/h2/hpack_encoder.hpp"

#include <array>
#include <cstring>

#include "weir/http/detail/h2/huffman.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// The first bits of representations (RFC 7541 §6).
constexpr unsigned indexed_bits = 0x80;
constexpr unsigned inserted_bits = 0x40;
constexpr unsigned never_indexed_bits = 0x10;
constexpr unsigned huffman_bits = 0x80;

/// A hash table of the names in the static table. A slot has the first index of a name, or 0.
constexpr std::size_t slot_count = 256;

constexpr std::size_t slot_of(std::string_view name) noexcept {
  const auto at = [name](std::size_t index) {
    return static_cast<std::size_t>(static_cast<unsigned char>(to_lower(name[index])));
  };
  return (at(0) + at(name.size() - 1) * 16 + at(name.size() / 2) * 5 + name.size() * 37) %
         slot_count;
}

consteval std::array<std::uint8_t, slot_count> make_slots() {
  std::array<std::uint8_t, slot_count> slots{};
  for (std::size_t index = 0; index < hpack_static_fields.size(); ++index) {
    const std::string_view name = hpack_static_fields[index].name;
    if (index > 0 && hpack_static_fields[index - 1].name == name) continue;
    std::size_t slot = slot_of(name);
    while (slots[slot] != 0) slot = (slot + 1) % slot_count;
    slots[slot] = static_cast<std::uint8_t>(index + 1);
  }
  return slots;
}

constexpr std::array<std::uint8_t, slot_count> slots = make_slots();

/// Returns the first static index of a name in any letter case, or 0.
std::uint8_t find_name(std::string_view name) noexcept {
  if (name.empty()) return 0;
  for (std::size_t slot = slot_of(name); slots[slot] != 0; slot = (slot + 1) % slot_count) {
    if (equals_ignoring_case(hpack_static_fields[slots[slot] - 1U].name, name)) return slots[slot];
  }
  return 0;
}

/// Returns the static index of a field whose name has this first index; 0 if the value differs.
std::uint8_t find_value(std::uint8_t index, std::string_view value) noexcept {
  const std::string_view name = hpack_static_fields[index - 1U].name;
  for (; index <= hpack_static_fields.size(); ++index) {
    const HeaderField& field = hpack_static_fields[index - 1U];
    if (field.name != name) return 0;
    // An empty value in the table says that it has only the name, but it is a value all the same.
    if (field.value == value) return index;
  }
  return 0;
}

/// Writes an integer (RFC 7541 §5.1) whose first byte begins with the bits of `first`.
char* write_integer(unsigned first, unsigned prefix_bits, std::size_t value, char* out) noexcept {
  const std::size_t prefix = (std::size_t{1} << prefix_bits) - 1;
  if (value < prefix) {
    *out++ = static_cast<char>(first | value);
    return out;
  }
  *out++ = static_cast<char>(first | prefix);
  for (value -= prefix; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80U);
  *out++ = static_cast<char>(value);
  return out;
}

/// Writes a string literal (RFC 7541 §5.2).
char* write_text(std::string_view text, LetterCase letters, char* out) noexcept {
  const std::size_t code_size = huffman_size(text, letters);
  if (code_size < text.size()) {
    return huffman_encode(text, write_integer(huffman_bits, 7, code_size, out), letters);
  }
  out = write_integer(0, 7, text.size(), out);
  for (const char each : text) *out++ = letters == LetterCase::lower ? to_lower(each) : each;
  return out;
}

}  // namespace

char* write_hpack_field(std::string_view name, std::string_view value, char* out,
                        HpackIndexing indexing) noexcept {
  const std::uint8_t index = find_name(name);
  if (index != 0 && indexing != HpackIndexing::never) {
    if (const std::uint8_t whole = find_value(index, value); whole != 0) {
      return write_integer(indexed_bits, 7, whole, out);
    }
  }
  if (indexing == HpackIndexing::insert) {
    out = write_integer(inserted_bits, 6, index, out);
  } else {
    out = write_integer(indexing == HpackIndexing::never ? never_indexed_bits : 0, 4, index, out);
  }
  if (index == 0) out = write_text(name, LetterCase::lower, out);
  return write_text(value, LetterCase::unchanged, out);
}

char* write_hpack_status(Status status, char* out) noexcept {
  const int code = code_of(status);
  const std::array<char, 3> digits{static_cast<char>('0' + code / 100),
                                   static_cast<char>('0' + code / 10 % 10),
                                   static_cast<char>('0' + code % 10)};
  return write_hpack_field(":status", {digits.data(), digits.size()}, out);
}

}  // namespace weir::http
