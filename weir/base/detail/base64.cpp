// Base64: encoding.
#include "weir/base/detail/base64.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace weir {

char* write_base64(Bytes bytes, char* out) noexcept {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), 3);
    std::uint32_t group = 0;  // 24 bits
    for (std::size_t index = 0; index < 3; ++index) {
      group = group << 8 | (index < count ? std::to_integer<std::uint32_t>(bytes[index]) : 0);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      const std::uint32_t digit = group >> (18 - 6 * index) & 63;
      *out++ = index <= count ? alphabet[digit] : '=';
    }
    bytes = bytes.subspan(count);
  }
  return out;
}

}  // namespace weir
