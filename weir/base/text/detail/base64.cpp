#include "weir/base/text/detail/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir {
namespace {

constexpr std::string_view standard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::uint8_t no_digit = 0xff;

/// The value of each character of an alphabet.
struct Digits {
  explicit constexpr Digits(std::string_view alphabet) {
    values.fill(no_digit);
    for (std::size_t index = 0; index < alphabet.size(); ++index) {
      values[static_cast<unsigned char>(alphabet[index])] = static_cast<std::uint8_t>(index);
    }
  }
  std::array<std::uint8_t, 256> values{};
};
constexpr Digits standard_digits(standard);
constexpr Digits url_digits(url);

/// Writes the digits of at most three bytes: one more than there are bytes.
char* write_group(std::string_view alphabet, Bytes bytes, char* out) noexcept {
  std::uint32_t group = 0;  // 24 bits
  for (std::size_t index = 0; index < 3; ++index) {
    group = group << 8 | (index < bytes.size() ? std::to_integer<std::uint32_t>(bytes[index]) : 0U);
  }
  for (std::size_t index = 0; index <= bytes.size(); ++index) {
    *out++ = alphabet[group >> (18 - 6 * index) & 63];
  }
  return out;
}

char* write(std::string_view alphabet, Bytes bytes, char* out) noexcept {
  while (!bytes.empty()) {
    const Bytes group = bytes.first(std::min<std::size_t>(bytes.size(), 3));
    out = write_group(alphabet, group, out);
    bytes = bytes.subspan(group.size());
  }
  return out;
}

/// Reads digits without padding.
std::optional<std::size_t> read(const Digits& digits, std::string_view text,
                                std::byte* out) noexcept {
  if (text.size() % 4 == 1) return std::nullopt;
  std::byte* const start = out;
  while (!text.empty()) {
    const std::size_t count = std::min<std::size_t>(text.size(), 4);
    std::uint32_t group = 0;
    std::uint32_t invalid = 0;  // the bits above a digit
    for (std::size_t index = 0; index < 4; ++index) {
      const std::uint32_t digit =
          index < count ? digits.values[static_cast<unsigned char>(text[index])] : 0U;
      invalid |= digit & 0xc0;
      group = group << 6 | (digit & 63);
    }
    const std::uint32_t unused = count == 4 ? 0 : count == 3 ? 0xff : 0xffff;
    if (invalid != 0 || (group & unused) != 0) return std::nullopt;
    for (std::size_t index = 0; index + 1 < count; ++index) {
      *out++ = static_cast<std::byte>(group >> (16 - 8 * index) & 0xff);
    }
    text.remove_prefix(count);
  }
  return static_cast<std::size_t>(out - start);
}

}  // namespace

char* write_base64(Bytes bytes, char* out) noexcept {
  char* const end = write(standard, bytes, out);
  const std::size_t padding = (3 - bytes.size() % 3) % 3;
  return std::fill_n(end, padding, '=');
}

char* write_base64url(Bytes bytes, char* out) noexcept {
  return write(url, bytes, out);
}

std::string to_base64url(Bytes bytes) {
  std::string text(base64url_size(bytes.size()), '\0');
  write_base64url(bytes, text.data());
  return text;
}

std::optional<std::size_t> read_base64(std::string_view text, std::byte* out) noexcept {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int index = 0; index < 2 && text.ends_with('='); ++index) text.remove_suffix(1);
  return read(standard_digits, text, out);
}

std::optional<std::size_t> read_base64url(std::string_view text, std::byte* out) noexcept {
  return read(url_digits, text, out);
}

}  // namespace weir
