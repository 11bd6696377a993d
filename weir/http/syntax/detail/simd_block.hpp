// A SIMD scan of 16 input bytes for the first byte that ends a header name, a value or a target.
#pragma once

#include <cstddef>

#include "weir/http/syntax/detail/char_class.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::http {

#if defined(__SSE2__)

/// Sixteen bytes of input. Each query returns a mask in which bit n stands for byte n.
class SimdBlock {
 public:
  static constexpr std::size_t size = 16;

  /// Reads `size` bytes from `start`, which needs no alignment.
  explicit SimdBlock(const char* start) noexcept
      : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(start))) {}

  unsigned equal_to(char character) const noexcept { return mask(equals(character)); }

  /// Marks bytes that are not letters, digits or '-': the end of a name, or a rarer token
  /// character.
  unsigned not_plain_name() const noexcept {
    const __m128i plain = _mm_or_si128(_mm_or_si128(letters(), in_range('0', '9')), equals('-'));
    return ~mask(plain) & 0xffffU;
  }

  /// Marks bytes that are not letters in lower case, digits or '-': those that a name in HTTP/2 may
  /// not have, or that are rare in one.
  unsigned not_lower_name() const noexcept {
    const __m128i plain =
        _mm_or_si128(_mm_or_si128(in_range('a', 'z'), in_range('0', '9')), equals('-'));
    return ~mask(plain) & 0xffffU;
  }

  /// Marks bytes that are not letters, digits, '-' or '.': the end of a host, or a rarer byte in
  /// one.
  unsigned not_plain_host() const noexcept {
    const __m128i marks = _mm_or_si128(equals('-'), equals('.'));
    return ~mask(_mm_or_si128(_mm_or_si128(letters(), in_range('0', '9')), marks)) & 0xffffU;
  }

  /// Marks bytes that are not letters, digits, '/', '-' or '_': the end of a path that needs no
  /// further check, or a rarer byte in one.
  unsigned not_plain_path() const noexcept {
    const __m128i marks = _mm_or_si128(equals('-'), equals('_'));
    return ~mask(_mm_or_si128(_mm_or_si128(letters(), in_range('/', '9')), marks)) & 0xffffU;
  }

  /// Marks bytes outside CharClass::target.
  unsigned not_target() const noexcept {
    const __m128i ranges = _mm_or_si128(in_range('$', ';'), in_range('?', '~'));
    const __m128i singles = _mm_or_si128(equals('='), equals('!'));
    return ~mask(_mm_or_si128(ranges, singles)) & 0xffffU;
  }

  /// Marks control characters, including HTAB: bytes that may end a value.
  unsigned controls() const noexcept {
    const __m128i above = _mm_cmpeq_epi8(_mm_max_epu8(bytes_, _mm_set1_epi8(' ')), bytes_);
    return ~mask(_mm_andnot_si128(equals('\x7f'), above)) & 0xffffU;
  }

 private:
  static unsigned mask(__m128i bytes) noexcept {
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
  }

  __m128i equals(char character) const noexcept {
    return _mm_cmpeq_epi8(bytes_, _mm_set1_epi8(character));
  }

  static __m128i in_range_of(__m128i bytes, char first, char last) noexcept {
    const __m128i offset = _mm_sub_epi8(bytes, _mm_set1_epi8(first));
    const __m128i width = _mm_set1_epi8(static_cast<char>(last - first));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, width), offset);
  }

  __m128i in_range(char first, char last) const noexcept {
    return in_range_of(bytes_, first, last);
  }

  __m128i letters() const noexcept {
    return in_range_of(_mm_or_si128(bytes_, _mm_set1_epi8(0x20)), 'a', 'z');
  }

  __m128i bytes_;
};

#else

/// Sixteen bytes of input. Each query returns a mask in which bit n stands for byte n.
class SimdBlock {
 public:
  static constexpr std::size_t size = 16;

  /// Refers to `size` bytes from `start`, which must stay unchanged while this object lives.
  explicit SimdBlock(const char* start) noexcept : bytes_(start) {}

  unsigned equal_to(char character) const noexcept {
    return mask([character](char each) { return each == character; });
  }
  unsigned not_plain_name() const noexcept {
    return mask([](char each) { return !is_in(each, CharClass::token); });
  }
  unsigned not_lower_name() const noexcept {
    return mask([](char each) { return !is_in(each, CharClass::token) || to_lower(each) != each; });
  }
  unsigned not_plain_host() const noexcept {
    return mask([](char each) { return !is_in(each, CharClass::host); });
  }
  unsigned not_plain_path() const noexcept {
    return mask([](char each) {
      return each != '/' && each != '-' && each != '_' && !is_in(each, CharClass::digit) &&
             (to_lower(each) < 'a' || to_lower(each) > 'z');
    });
  }
  unsigned not_target() const noexcept {
    return mask([](char each) { return !is_in(each, CharClass::target); });
  }
  unsigned controls() const noexcept {
    return mask([](char each) { return each == '\t' || !is_in(each, CharClass::value); });
  }

 private:
  template <class Predicate>
  unsigned mask(Predicate predicate) const noexcept {
    unsigned bits = 0;
    for (std::size_t index = 0; index < size; ++index) {
      bits |= static_cast<unsigned>(predicate(bytes_[index])) << index;
    }
    return bits;
  }

  const char* bytes_;
};

#endif

/// Returns the lowest bit of a non-zero mask. std::countr_zero() would test for zero first.
inline int first_bit(unsigned mask) noexcept {
  return __builtin_ctz(mask);
}

/// Implements find_stop() for a remainder that is shorter than a block.
template <class Stops>
[[gnu::noinline]] const char* find_stop_at_end(const char* start, const char* position,
                                               const char* end, Stops stops) noexcept {
  if (position == end) return end;
  const auto left = static_cast<std::size_t>(end - position);
  unsigned mask = 0;
  if (static_cast<std::size_t>(end - start) >= SimdBlock::size) {
    mask = stops(SimdBlock(end - SimdBlock::size)) >> (SimdBlock::size - left);
  } else {
    char copy[SimdBlock::size] = {};
    for (std::size_t index = 0; index < left; ++index) copy[index] = position[index];
    mask = stops(SimdBlock(copy)) & ((1U << left) - 1U);
  }
  return mask != 0 ? position + first_bit(mask) : end;
}

/// Returns the first byte in [position, end) for which `stops` (a mask of a SimdBlock) has a bit,
/// or `end` if there is none. Reads whole blocks, some of which end at `end` and start before
/// `position`, but never a byte outside [start, end).
template <class Stops>
[[gnu::always_inline]] inline const char* find_stop(const char* start, const char* position,
                                                    const char* end, Stops stops) noexcept {
  while (static_cast<std::size_t>(end - position) >= SimdBlock::size) {
    if (const unsigned mask = stops(SimdBlock(position)); mask != 0) {
      return position + first_bit(mask);
    }
    position += SimdBlock::size;
  }
  return find_stop_at_end(start, position, end, stops);
}

}  // namespace weir::http
