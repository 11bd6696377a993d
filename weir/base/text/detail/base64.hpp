// Base64 and base64url (RFC 4648 §4, §5): encoders and strict decoders.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir {

/// Returns the length of the base64 of `size` bytes.
constexpr std::size_t base64_size(std::size_t size) noexcept {
  return (size + 2) / 3 * 4;
}
/// Returns the length of the base64url of `size` bytes, which has no padding.
constexpr std::size_t base64url_size(std::size_t size) noexcept {
  return size / 3 * 4 + (size % 3 * 8 + 5) / 6;
}
/// Returns the largest number of bytes that `size` characters of either encoding stand for.
constexpr std::size_t base64_bytes_max(std::size_t size) noexcept {
  return size / 4 * 3 + size % 4 * 3 / 4;
}

/// Writes the base64 of `bytes`, padded with "=", to `out`, which has room for
/// base64_size(bytes.size()) characters.
/// Returns: the end of the text.
char* write_base64(Bytes bytes, char* out) noexcept;
/// Writes the base64url of `bytes`, without padding, to `out`, which has room for
/// base64url_size(bytes.size()) characters.
/// Returns: the end of the text.
char* write_base64url(Bytes bytes, char* out) noexcept;
std::string to_base64url(Bytes bytes);

/// Reads padded base64 into `out`, which has room for base64_bytes_max(text.size()) bytes and may
/// begin where `text` begins. Only one text stands for each sequence of bytes: white space, missing
/// padding and unused bits that are not zero are errors.
/// Returns: the number of bytes; nullopt for a text that is no base64.
std::optional<std::size_t> read_base64(std::string_view text, std::byte* out) noexcept;
/// Reads base64url without padding in the same way.
/// Returns: the number of bytes; nullopt for a text that is no base64url.
std::optional<std::size_t> read_base64url(std::string_view text, std::byte* out) noexcept;

}  // namespace weir
