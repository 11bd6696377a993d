// UTF-8: checks byte sequences, and decodes and encodes code points.
#include "weir/base/text/detail/utf8.hpp"

#include <cstring>

namespace weir {
namespace {

constexpr bool in_range(char byte, unsigned first, unsigned last) noexcept {
  const auto code = static_cast<unsigned char>(byte);
  return code >= first && code <= last;
}

/// Returns the end of the ASCII at `position` that fills blocks of 32 bytes. The compiler makes
/// vector instructions of a block.
const char* skip_ascii_blocks(const char* position, const char* end) noexcept {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  std::uint64_t words[4];
  for (; end - position >= static_cast<std::ptrdiff_t>(sizeof words); position += sizeof words) {
    std::memcpy(words, position, sizeof words);
    if (((words[0] | words[1] | words[2] | words[3]) & high_bits) != 0) break;
  }
  return position;
}

/// Returns the end of the whole characters at `position`.
const char* skip_characters(const char* position, const char* end) noexcept {
  while (position < end) {
    const auto lead = static_cast<unsigned char>(*position);
    if (lead < 0x80) {
      position = skip_ascii_blocks(position, end);
      while (position < end && static_cast<signed char>(*position) >= 0) ++position;
      continue;
    }
    const std::size_t length = utf8_length(position, end);
    if (length == 0) break;
    position += length;
  }
  return position;
}

}  // namespace

// Follows the grammar of RFC 3629 §4 line by line.
std::size_t utf8_length(const char* position, const char* end) noexcept {
  const auto lead = static_cast<unsigned char>(*position);
  if (lead < 0x80) return 1;
  const std::ptrdiff_t left = end - position;
  if (lead < 0xC2 || left < 2) return 0;
  if (lead < 0xE0) return in_range(position[1], 0x80, 0xBF) ? 2 : 0;
  if (left < 3 || !in_range(position[2], 0x80, 0xBF)) return 0;
  if (lead < 0xF0) {
    const unsigned first = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned last = lead == 0xED ? 0x9F : 0xBF;
    return in_range(position[1], first, last) ? 3 : 0;
  }
  if (left < 4 || lead > 0xF4 || !in_range(position[3], 0x80, 0xBF)) return 0;
  const unsigned first = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned last = lead == 0xF4 ? 0x8F : 0xBF;
  return in_range(position[1], first, last) ? 4 : 0;
}

std::size_t Utf8Checker::check(std::string_view piece) noexcept {
  const char* const start = piece.data();
  const char* const end = start + piece.size();
  const char* position = start;
  while (position < end) {
    if (left_ == 0) {
      position = skip_characters(position, end);
      if (position == end) break;
    }
    // The character is split or invalid.
    if (!step(static_cast<unsigned char>(*position))) break;
    ++position;
  }
  return static_cast<std::size_t>(position - start);
}

/// Takes the next byte. Returns false if it cannot follow.
bool Utf8Checker::step(unsigned char byte) noexcept {
  if (left_ == 0) return begin(byte);
  if (byte < first_ || byte > last_) return false;
  first_ = 0x80;
  last_ = 0xBF;
  --left_;
  return true;
}

/// Takes the first byte of a character, which limits the second (RFC 3629 §4).
bool Utf8Checker::begin(unsigned char lead) noexcept {
  if (lead < 0x80) return true;
  if (lead < 0xC2 || lead > 0xF4) return false;
  left_ = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  first_ = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  last_ = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return true;
}

char* put_utf8(char* out, std::uint32_t code_point) noexcept {
  const auto tail = [code_point](unsigned shift) {
    return static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
  };
  if (code_point < 0x80) {
    *out++ = static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    *out++ = static_cast<char>(0xC0U | (code_point >> 6));
    *out++ = tail(0);
  } else if (code_point < 0x10000) {
    *out++ = static_cast<char>(0xE0U | (code_point >> 12));
    *out++ = tail(6);
    *out++ = tail(0);
  } else {
    *out++ = static_cast<char>(0xF0U | (code_point >> 18));
    *out++ = tail(12);
    *out++ = tail(6);
    *out++ = tail(0);
  }
  return out;
}

}  // namespace weir
