// Finds the end of the plain part of a string: ASCII without quotes, escapes and control
// characters.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::json::detail {

/// Returns true if the byte is written and read as it is.
constexpr bool is_plain(char byte) noexcept {
  const auto code = static_cast<unsigned char>(byte);
  return code >= 0x20 && code < 0x80 && byte != '"' && byte != '\\';
}

/// Returns true if all bytes of a word (of 4 or 8) are plain. A subtraction borrows from the next
/// byte only if it has found a byte that is not plain.
template <class Word>
constexpr bool all_plain(Word word) noexcept {
  constexpr Word ones = static_cast<Word>(~Word{0}) / 0xFF;
  constexpr Word tops = ones * 0x80;
  const Word quotes = (word ^ (ones * '"')) - ones;
  const Word backslashes = (word ^ (ones * '\\')) - ones;
  const Word controls = word - ones * ' ';
  return ((controls | quotes | backslashes | word) & tops) == 0;
}

inline constexpr std::size_t block_size = 16;

#if defined(__SSE2__)

/// Returns a mask of the sixteen bytes at `bytes`: bit n is set if byte n is not plain.
inline unsigned not_plain_of_16(const char* bytes) noexcept {
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  // Bytes from 0x80 up are negative as signed bytes, so they are below the space too.
  const __m128i outside = _mm_cmplt_epi8(block, _mm_set1_epi8(' '));
  const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                     _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(outside, marks)));
}

#else

/// Returns a mask of the sixteen bytes at `bytes`: bit n is set if byte n is not plain.
inline unsigned not_plain_of_16(const char* bytes) noexcept {
  unsigned mask = 0;
  for (unsigned index = 0; index < block_size; ++index) {
    mask |= static_cast<unsigned>(!is_plain(bytes[index])) << index;
  }
  return mask;
}

#endif

/// Returns the first byte in [position, end) that is not plain, or `end`. `start` is the
/// beginning of the text that ends at `end`; bytes from `start` on may be read again.
inline const char* find_not_plain(const char* start, const char* position,
                                  const char* end) noexcept {
  while (static_cast<std::size_t>(end - position) >= block_size) {
    if (const unsigned mask = not_plain_of_16(position); mask != 0) {
      return position + std::countr_zero(mask);
    }
    position += block_size;
  }
  if (static_cast<std::size_t>(end - start) >= block_size) {
    const auto left = static_cast<std::size_t>(end - position);
    const unsigned mask = not_plain_of_16(end - block_size) >> (block_size - left);
    return mask != 0 ? position + std::countr_zero(mask) : end;
  }
  while (position != end && is_plain(*position)) ++position;
  return position;
}

}  // namespace weir::json::detail
