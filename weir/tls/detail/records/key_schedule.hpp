// The key derivation of TLS: HKDF for TLS 1.3 and the PRF of TLS 1.2, with SHA-256 and SHA-384.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// The hash of a cipher suite.
enum class Hash : std::uint8_t { sha_256, sha_384 };
constexpr std::size_t digest_bytes_of(Hash hash) noexcept {
  return hash == Hash::sha_384 ? 48 : 32;
}
inline constexpr std::size_t digest_bytes_max = 48;

// OpenSSL has these functions too (EVP_KDF). They look up their algorithms by name in each call and
// allocate about 15 blocks of memory, which takes 4 times as long as the hashing. The functions
// below allocate nothing, and erase what they leave behind.

/// HKDF-Expand-Label. RFC 8446, 7.1; RFC 5869, 2.3. `label` has no "tls13 " before it, and has at
/// most 249 bytes. `target` has at most 255 digests.
void expand_label(Hash hash, Bytes secret, std::string_view label, Bytes context,
                  std::span<std::uint8_t> target) noexcept;

/// Writes the next secret of the key schedule of TLS 1.3, which has the size of a digest.
/// It mixes `input` into `previous`. Empty ones stand for the zeros of the schedule. RFC 8446, 7.1.
void next_secret(Hash hash, Bytes previous, Bytes input, std::span<std::uint8_t> target) noexcept;

/// The PRF of TLS 1.2. `seeds` are the label and the seed, in any parts. RFC 5246, 5.
void pseudorandom(Hash hash, Bytes secret, std::span<const Bytes> seeds,
                  std::span<std::uint8_t> target) noexcept;

}  // namespace weir::tls::detail
