// SHA-1 by the text of RFC 3174 §6.1.
#include "weir/http/ws/detail/sha1.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace weir::http {
namespace {

constexpr std::size_t block_size = 64;

using State = std::array<std::uint32_t, 5>;

std::uint32_t mix(std::size_t round, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  if (round < 20) return (b & c) | (~b & d);
  if (round >= 40 && round < 60) return (b & c) | (b & d) | (c & d);
  return b ^ c ^ d;
}

void add_block(const std::byte* block, State& state) noexcept {
  constexpr std::uint32_t constants[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
  std::array<std::uint32_t, 80> words;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index < 16) {
      words[index] = 0;
      for (std::size_t each = 0; each < 4; ++each) {
        words[index] = words[index] << 8 | std::to_integer<std::uint32_t>(block[4 * index + each]);
      }
    } else {
      words[index] =
          std::rotl(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1);
    }
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t round = 0; round < words.size(); ++round) {
    const std::uint32_t next =
        std::rotl(a, 5) + mix(round, b, c, d) + e + words[round] + constants[round / 20];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

}  // namespace

std::array<std::byte, 20> sha1(Bytes bytes) noexcept {
  State state{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= block_size; bytes = bytes.subspan(block_size)) {
    add_block(bytes.data(), state);
  }
  // The rest, a bit of 1, zeros, and the number of bits, in one or two blocks.
  std::array<std::byte, 2 * block_size> end{};
  std::ranges::copy(bytes, end.begin());
  end[bytes.size()] = std::byte{0x80};
  const std::size_t size = bytes.size() + 9 <= block_size ? block_size : 2 * block_size;
  for (std::size_t index = 0; index < 8; ++index) {
    end[size - 1 - index] = static_cast<std::byte>(bits >> (8 * index));
  }
  for (std::size_t at = 0; at < size; at += block_size) add_block(end.data() + at, state);
  std::array<std::byte, 20> digest;
  for (std::size_t index = 0; index < digest.size(); ++index) {
    digest[index] = static_cast<std::byte>(state[index / 4] >> (24 - 8 * (index % 4)));
  }
  return digest;
}

}  // namespace weir::http
