// Comparison of short texts without the cost of calling memcmp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

/// Returns true if both texts have the same bytes. Texts of at most 16 bytes, the common case, are
/// compared inline.
[[gnu::always_inline]] inline bool fast_equal(std::string_view a, std::string_view b) noexcept {
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  const auto same = [&]<class Word>(Word left, std::size_t offset) {
    Word right;
    std::memcpy(&left, a.data() + offset, sizeof(Word));
    std::memcpy(&right, b.data() + offset, sizeof(Word));
    return left == right;
  };
  using Half = std::uint32_t;
  using Whole = std::uint64_t;
  if (size > 2 * sizeof(Whole)) return std::memcmp(a.data(), b.data(), size) == 0;
  if (size >= sizeof(Whole)) return same(Whole(), 0) && same(Whole(), size - sizeof(Whole));
  if (size >= sizeof(Half)) return same(Half(), 0) && same(Half(), size - sizeof(Half));
  for (std::size_t index = 0; index < size; ++index) {
    if (a[index] != b[index]) return false;
  }
  return true;
}

}  // namespace weir
