#include "weir/base/text/detail/hash.hpp"

#include <cstddef>
#include <cstring>

namespace weir {
namespace {

__extension__ using Wide = unsigned __int128;

// Digits of pi behind the point.
constexpr std::uint64_t key_0 = 0x243f6a8885a308d3;
constexpr std::uint64_t key_1 = 0x13198a2e03707344;
constexpr std::uint64_t key_2 = 0xa4093822299f31d0;
constexpr std::uint64_t key_3 = 0x082efa98ec4e6c89;

std::uint64_t load(const char* from, std::size_t size = 8) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

/// Mixes two words. A factor of zero hides only itself, not the other one.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const Wide product = static_cast<Wide>(a) * b;
  return a ^ b ^ static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

Hash128 hash_bytes(std::string_view text, std::uint64_t seed) noexcept {
  std::uint64_t low = mix(seed ^ key_0, text.size() ^ key_1);
  std::uint64_t high = mix(seed ^ key_2, text.size() ^ key_3);
  const char* from = text.data();
  std::size_t left = text.size();
  for (; left >= 16; left -= 16, from += 16) {
    const std::uint64_t first = load(from);
    const std::uint64_t second = load(from + 8);
    low = mix(low ^ first, second ^ key_1);
    high = mix(high ^ second, first ^ key_3);
  }
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  if (left >= 8) {
    first = load(from);
    second = left > 8 ? load(from + 8, left - 8) : 0;
  } else if (left > 0) {
    first = load(from, left);
  }
  low = mix(low ^ first, second ^ key_1);
  high = mix(high ^ second, first ^ key_3);
  return {mix(low ^ key_2, high ^ key_0), mix(high ^ key_1, low ^ key_3)};
}

}  // namespace weir
