// Digests of passwords and tokens, whose comparison tells neither their bytes nor their size.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/text/detail/constant_time.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"

namespace weir::http {

using SecretDigest = std::array<std::uint8_t, 32>;

/// Returns the SHA-256 of a secret. The time depends on its size, so a server makes the digests of
/// its own secrets once, and then only that of what a client sends.
inline SecretDigest secret_digest(std::string_view secret) noexcept {
  SecretDigest digest;
  tls::detail::digest(tls::detail::Hash::sha_256, to_bytes(secret), digest);
  return digest;
}

/// Compares two digests in constant time.
inline bool is_same_secret(const SecretDigest& a, const SecretDigest& b) noexcept {
  return constant_time_equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

/// Returns the name that belongs to a secret; nullptr if the list does not have the secret. All
/// digests are compared, so that the time does not tell the place in the list.
inline const std::string* find_name(std::span<const std::pair<SecretDigest, std::string>> list,
                                    const SecretDigest& digest) noexcept {
  const std::string* name = nullptr;
  for (const auto& [known, owner] : list) {
    if (is_same_secret(known, digest)) name = &owner;
  }
  return name;
}

}  // namespace weir::http
