#include "weir/base/text/detail/printable.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "weir/base/text/detail/utf8.hpp"

namespace weir {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

/// The code points that are not printable, in order. Unicode 15: the categories Cc, Zl, Zp and Cs,
/// and those of Cf that are invisible or change the direction of text. The signs of Cf that are
/// visible, such as U+0600, are printable.
constexpr std::array hidden{
    Range{0x0000, 0x001F},    // C0
    Range{0x007F, 0x009F},    // DEL, C1
    Range{0x00AD, 0x00AD},    // soft hyphen
    Range{0x061C, 0x061C},    // Arabic letter mark
    Range{0x180E, 0x180E},    // Mongolian vowel separator
    Range{0x200B, 0x200B},    // zero width space
    Range{0x200E, 0x200F},    // marks of direction
    Range{0x2028, 0x202E},    // separators, embeddings and overrides of direction
    Range{0x2060, 0x206F},    // invisible operators, isolates
    Range{0xD800, 0xDFFF},    // surrogates
    Range{0xFDD0, 0xFDEF},    // noncharacters
    Range{0xFEFF, 0xFEFF},    // byte order mark
    Range{0xFFF0, 0xFFFB},    // annotations
    Range{0xFFFE, 0xFFFF},    // noncharacters
    Range{0x1BCA0, 0x1BCA3},  // controls of shorthand
    Range{0x1D173, 0x1D17A},  // controls of music
    Range{0xE0000, 0xE00FF},  // tags
    Range{0xE01F0, 0xE0FFF},  // reserved for invisible characters
};
static_assert(std::ranges::is_sorted(hidden, {}, &Range::first));

/// Returns the code point of a valid sequence of `size` bytes.
std::uint32_t code_point_of(const char* bytes, std::size_t size) noexcept {
  const auto byte = [bytes](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  if (size == 1) return byte(0);
  std::uint32_t code_point = byte(0) & (0x7FU >> size);
  for (std::size_t index = 1; index < size; ++index) {
    code_point = code_point << 6 | (byte(index) & 0x3FU);
  }
  return code_point;
}

/// Returns the size of the printable character at `position`, or 0.
std::size_t printable_size(const char* position, const char* end) noexcept {
  const auto lead = static_cast<unsigned char>(*position);
  if (lead >= 0x20 && lead < 0x7F) return 1;
  const std::size_t size = utf8_length(position, end);
  return size != 0 && is_printable(code_point_of(position, size)) ? size : 0;
}

constexpr std::string_view digits = "0123456789abcdef";

void append_byte(std::string& out, char byte) {
  const auto code = static_cast<unsigned char>(byte);
  out.append("\\x").append({digits[code >> 4], digits[code & 15U]});
}

void append_unit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[unit >> shift & 15U];
}

void append_code_point(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x10000) return append_unit(out, code_point);
  append_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
  append_unit(out, 0xDC00 + ((code_point - 0x10000) & 0x3FF));
}

}  // namespace

bool is_printable(std::uint32_t code_point) noexcept {
  const auto* const after = std::ranges::upper_bound(hidden, code_point, {}, &Range::first);
  if (after != hidden.begin() && code_point <= std::prev(after)->last) return false;
  return code_point <= 0x10FFFF && (code_point & 0xFFFE) != 0xFFFE;
}

std::size_t printable_prefix(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  const char* position = text.data();
  while (position != end) {
    const std::size_t size = printable_size(position, end);
    if (size == 0) break;
    position += size;
  }
  return static_cast<std::size_t>(position - text.data());
}

std::string to_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    const std::size_t size = printable_prefix(text);
    out.append(text.substr(0, size));
    text.remove_prefix(size);
    if (text.empty()) break;
    // All bytes of a character are written in the same way.
    const std::size_t hidden_size =
        std::max<std::size_t>(utf8_length(text.data(), text.data() + text.size()), 1);
    for (const char each : text.substr(0, hidden_size)) append_byte(out, each);
    text.remove_prefix(hidden_size);
  }
  return out;
}

std::string to_printable_lines(std::string_view text) {
  std::string out;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    out.append(to_printable(text.substr(0, end))).append("\n");
    text.remove_prefix(end + 1);
  }
  return out.append(to_printable(text));
}

std::string to_printable_json(std::string json) {
  std::size_t start = printable_prefix(json);
  if (start == json.size()) return json;
  std::string out;
  std::string_view rest = json;
  while (!rest.empty()) {
    out.append(rest.substr(0, start));
    rest.remove_prefix(start);
    if (rest.empty()) break;
    const std::size_t size = utf8_length(rest.data(), rest.data() + rest.size());
    append_code_point(out, size == 0 ? 0xFFFD : code_point_of(rest.data(), size));
    rest.remove_prefix(std::max<std::size_t>(size, 1));
    start = printable_prefix(rest);
  }
  return out;
}

}  // namespace weir
