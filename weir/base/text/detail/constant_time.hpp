// Comparison of secrets in constant time.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir {

/// Returns true if `a` and `b` are equal. The time depends on their sizes only, so that a peer
/// cannot find a secret byte by byte. Texts of different sizes are unequal immediately: compare
/// digests of secrets whose size is a secret too.
inline bool constant_time_equal(Bytes a, Bytes b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    difference |= std::to_integer<unsigned>(a[index] ^ b[index]);
    asm("" : "+r"(difference));  // the compiler cannot leave the loop early
  }
  return difference == 0;
}
inline bool constant_time_equal(std::string_view a, std::string_view b) noexcept {
  return constant_time_equal(to_bytes(a), to_bytes(b));
}

}  // namespace weir
