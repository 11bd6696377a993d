#include "weir/tls/crypto/detail/sha2.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir::tls::detail {
namespace {

/// The constants of the rounds of SHA-512. SHA-256 uses the first halves of the first 64.
constexpr std::array<std::uint64_t, 80> constants{
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817};

/// The number of rounds, and the bits of each rotation or shift (FIPS 180-4, 4.1.2 and 4.1.3).
template <class Word>
struct Parameters;
template <>
struct Parameters<std::uint32_t> {
  static constexpr std::size_t rounds = 64;
  static constexpr std::array<int, 3> sum_a{2, 13, 22};
  static constexpr std::array<int, 3> sum_e{6, 11, 25};
  static constexpr std::array<int, 3> word_15{7, 18, 3};
  static constexpr std::array<int, 3> word_2{17, 19, 10};
};
template <>
struct Parameters<std::uint64_t> {
  static constexpr std::size_t rounds = 80;
  static constexpr std::array<int, 3> sum_a{28, 34, 39};
  static constexpr std::array<int, 3> sum_e{14, 18, 41};
  static constexpr std::array<int, 3> word_15{1, 8, 7};
  static constexpr std::array<int, 3> word_2{19, 61, 6};
};

template <class Word>
constexpr Word constant_of(std::size_t round) noexcept {
  return static_cast<Word>(constants[round] >> (64 - 8 * sizeof(Word)));
}
template <class Word>
constexpr Word rotate(Word word, const std::array<int, 3>& bits) noexcept {
  return std::rotr(word, bits[0]) ^ std::rotr(word, bits[1]) ^ std::rotr(word, bits[2]);
}
template <class Word>
constexpr Word shift(Word word, const std::array<int, 3>& bits) noexcept {
  return std::rotr(word, bits[0]) ^ std::rotr(word, bits[1]) ^ (word >> bits[2]);
}

}  // namespace

constinit const Sha2<std::uint32_t>::State sha256_initial{
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constinit const Sha2<std::uint64_t>::State sha384_initial{
    0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
    0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4};
constinit const Sha2<std::uint64_t>::State sha512_initial{
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

template <class Word>
void Sha2<Word>::add_block(const std::byte* block) noexcept {
  using Bits = Parameters<Word>;
  std::array<Word, Bits::rounds> words;
  for (std::size_t index = 0; index < 16; ++index) {
    words[index] = 0;
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte) {
      words[index] = static_cast<Word>(words[index] << 8 |
                                       std::to_integer<Word>(block[sizeof(Word) * index + byte]));
    }
  }
  for (std::size_t index = 16; index < words.size(); ++index) {
    words[index] = shift(words[index - 2], Bits::word_2) + words[index - 7] +
                   shift(words[index - 15], Bits::word_15) + words[index - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t round = 0; round < words.size(); ++round) {
    const Word first =
        h + rotate(e, Bits::sum_e) + ((e & f) ^ (~e & g)) + constant_of<Word>(round) + words[round];
    const Word second = rotate(a, Bits::sum_a) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State mixed{a, b, c, d, e, f, g, h};
  for (std::size_t index = 0; index < mixed.size(); ++index) state_[index] += mixed[index];
}

template <class Word>
void Sha2<Word>::update(Bytes bytes) noexcept {
  std::size_t used = bytes_ % block_bytes;
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (used == 0 && bytes.size() >= block_bytes) {
      add_block(bytes.data());
      bytes = bytes.subspan(block_bytes);
      continue;
    }
    const std::size_t count = std::min(bytes.size(), block_bytes - used);
    std::memcpy(&rest_[used], bytes.data(), count);
    bytes = bytes.subspan(count);
    used = (used + count) % block_bytes;
    if (used == 0) add_block(rest_.data());
  }
}

/// Adds a bit, zeros, and the number of bits in the last two words (FIPS 180-4, 5.1).
template <class Word>
void Sha2<Word>::finish(std::span<std::uint8_t> target) noexcept {
  std::size_t used = bytes_ % block_bytes;
  rest_[used++] = std::byte{0x80};
  if (used > block_bytes - 2 * sizeof(Word)) {
    std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(used), rest_.end(), std::byte{0});
    add_block(rest_.data());
    used = 0;
  }
  std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(used), rest_.end(), std::byte{0});
  for (std::size_t index = 0; index < 8; ++index) {
    rest_[block_bytes - 1 - index] = static_cast<std::byte>(bytes_ * 8 >> 8 * index);
  }
  add_block(rest_.data());
  for (std::size_t index = 0; index < target.size(); ++index) {
    const std::size_t low = 8 * (sizeof(Word) - 1 - index % sizeof(Word));
    target[index] = static_cast<std::uint8_t>(state_[index / sizeof(Word)] >> low);
  }
}

template class Sha2<std::uint32_t>;
template class Sha2<std::uint64_t>;

}  // namespace weir::tls::detail
