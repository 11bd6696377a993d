// Digests, HMAC and HKDF with SHA-256, SHA-384 and SHA-512.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// A hash of the family SHA-2. Cipher suites of TLS have the first two.
enum class Hash : std::uint8_t { sha_256, sha_384, sha_512 };
constexpr std::size_t digest_bytes_of(Hash hash) noexcept {
  return hash == Hash::sha_256 ? 32 : hash == Hash::sha_384 ? 48 : 64;
}

/// Bytes of secrets, erased at their end.
template <std::size_t Size>
struct Secret : std::array<std::uint8_t, Size> {
  Secret() noexcept { this->fill(0); }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();
};
/// Room for a digest of the hash of a cipher suite.
using Digest = Secret<48>;

/// Writes the digest of `bytes`. `target` has its size.
void digest(Hash hash, Bytes bytes, std::span<std::uint8_t> target) noexcept;

/// HMAC (RFC 2104) of several messages with one key. OpenSSL's EVP_MAC finds its algorithms by name
/// in each use, and allocates about 10 blocks of memory. This class allocates nothing, and erases
/// itself.
class Hmac {
 public:
  Hmac(Hash hash, Bytes key) noexcept;
  Hmac(const Hmac&) noexcept = default;
  Hmac& operator=(const Hmac&) noexcept = default;
  ~Hmac();

  Hash hash() const noexcept { return hash_; }
  void update(Bytes bytes) noexcept;
  void update(std::span<const std::uint8_t> bytes) noexcept { update(std::as_bytes(bytes)); }
  void update(std::string_view text) noexcept { update(to_bytes(text)); }
  /// Drops the bytes of the message so far.
  void restart() noexcept { message_ = inner_; }
  /// Ends the message, and begins the next one. `target` has the size of a digest.
  void finish(std::span<std::uint8_t> target) noexcept;

 private:
  /// A context of OpenSSL, or a Sha2 without OpenSSL, for any of the hashes.
  struct State {
    std::array<std::uint64_t, 27> words;
  };
  void begin(State& state, const Secret<128>& pad) const noexcept;
  void init(State& state) const noexcept;
  void add(State& state, const void* data, std::size_t size) const noexcept;
  void end(State& state, std::uint8_t* target) const noexcept;

  State inner_;
  State outer_;
  State message_;
  Hash hash_;
};

/// Derives a key from a secret of high entropy (HKDF of RFC 5869, with SHA-256 and without salt).
/// Keys with different labels are independent.
void derive_key(Bytes secret, std::string_view label, Secret<32>& key) noexcept;

}  // namespace weir::tls::detail
