// SHA-256, SHA-384 and SHA-512 (FIPS 180-4), for a build without OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// A hash of the family SHA-2 over words of 32 bits (SHA-256) or 64 bits (SHA-384, SHA-512). Its
/// time depends on the number of bytes only. OpenSSL's hashes are several times as fast.
template <class Word>
class Sha2 {
 public:
  static constexpr std::size_t block_bytes = 16 * sizeof(Word);
  using State = std::array<Word, 8>;

  /// Begins with the state that the standard has for the hash.
  explicit Sha2(const State& initial) noexcept : state_(initial) {}
  void update(Bytes bytes) noexcept;
  /// Ends the message. `target` takes the first bytes of the digest; SHA-384 has 48 of them.
  void finish(std::span<std::uint8_t> target) noexcept;

 private:
  void add_block(const std::byte* block) noexcept;

  State state_;
  std::uint64_t bytes_ = 0;
  std::array<std::byte, block_bytes> rest_{};  // the first bytes of the next block
};

extern template class Sha2<std::uint32_t>;
extern template class Sha2<std::uint64_t>;

extern const Sha2<std::uint32_t>::State sha256_initial;
extern const Sha2<std::uint64_t>::State sha384_initial;
extern const Sha2<std::uint64_t>::State sha512_initial;

}  // namespace weir::tls::detail
