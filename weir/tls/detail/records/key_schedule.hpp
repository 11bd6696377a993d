// The key derivation of TLS: HKDF for TLS 1.3 and the PRF of TLS 1.2, with SHA-256 and SHA-384.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"

namespace weir::tls::detail {

// OpenSSL has these functions too (EVP_KDF), at 4 times the cost; see Hmac.

/// HKDF-Expand-Label. RFC 8446, 7.1; RFC 5869, 2.3. `label` has no "tls13 " before it, and has at
/// most 249 bytes. `target` has at most 255 digests.
void expand_label(Hash hash, Bytes secret, std::string_view label, Bytes context,
                  std::span<std::uint8_t> target) noexcept;

/// Writes the next secret of the key schedule of TLS 1.3, which has the size of a digest. It mixes
/// `input` into `previous`. Empty ones stand for the zeros of the schedule. RFC 8446, 7.1.
void next_secret(Hash hash, Bytes previous, Bytes input, std::span<std::uint8_t> target) noexcept;

/// The PRF of TLS 1.2. `seeds` are the label and the seed, in any parts. RFC 5246, 5.
void pseudorandom(Hash hash, Bytes secret, std::span<const Bytes> seeds,
                  std::span<std::uint8_t> target) noexcept;

}  // namespace weir::tls::detail
