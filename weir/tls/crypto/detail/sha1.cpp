#include "weir/tls/crypto/detail/sha1.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace weir::tls::detail {
namespace {

constexpr std::size_t block_bytes = 64;

using State = std::array<std::uint32_t, 5>;

/// Mixes one block into the state (FIPS 180-4, 6.1.2).
void add_block(State& state, const std::byte* block) noexcept {
  std::array<std::uint32_t, 80> words;
  for (std::size_t index = 0; index < 16; ++index) {
    words[index] = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      words[index] = words[index] << 8 | std::to_integer<std::uint32_t>(block[4 * index + byte]);
    }
  }
  for (std::size_t index = 16; index < words.size(); ++index) {
    words[index] =
        std::rotl(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t round = 0; round < words.size(); ++round) {
    std::uint32_t mixed = b ^ c ^ d;  // rounds 20 to 39, and from 60
    std::uint32_t constant = round < 40 ? 0x6ed9eba1 : 0xca62c1d6;
    if (round < 20) {
      mixed = (b & c) | (~b & d);
      constant = 0x5a827999;
    } else if (round >= 40 && round < 60) {
      mixed = (b & c) | (b & d) | (c & d);
      constant = 0x8f1bbcdc;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[round];
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
  State state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  Bytes rest = bytes;
  for (; rest.size() >= block_bytes; rest = rest.subspan(block_bytes)) {
    add_block(state, rest.data());
  }
  // The end: the other bytes, a bit, zeros, and the number of bits (FIPS 180-4, 5.1.1).
  std::array<std::byte, 2 * block_bytes> end{};
  if (!rest.empty()) std::memcpy(end.data(), rest.data(), rest.size());
  end[rest.size()] = std::byte{0x80};
  const std::size_t size = rest.size() + 1 + 8 <= block_bytes ? block_bytes : end.size();
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t index = 0; index < 8; ++index) {
    end[size - 1 - index] = static_cast<std::byte>(bits >> 8 * index);
  }
  for (std::size_t offset = 0; offset < size; offset += block_bytes) {
    add_block(state, &end[offset]);
  }
  std::array<std::byte, 20> digest;
  for (std::size_t index = 0; index < digest.size(); ++index) {
    digest[index] = static_cast<std::byte>(state[index / 4] >> (24 - 8 * (index % 4)));
  }
  return digest;
}

}  // namespace weir::tls::detail
