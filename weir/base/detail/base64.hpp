// Base64 (RFC 4648 §4).
#pragma once

#include <cstddef>

#include "weir/base/detail/bytes.hpp"

namespace weir {

/// Returns the length of the base64 of `size` bytes.
constexpr std::size_t base64_size(std::size_t size) noexcept {
  return (size + 2) / 3 * 4;
}

/// Writes the base64 of `bytes`, padded with "=", to `out`, which has room for
/// base64_size(bytes.size()) characters.
/// Returns: the end of the text.
char* write_base64(Bytes bytes, char* out) noexcept;

}  // namespace weir
