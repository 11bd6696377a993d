// The crypto of a build without OpenSSL: Weir's own hashes, the random numbers of the kernel, and
// neither AES-GCM nor public keys.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/detail/random_source.hpp"
#include "weir/os/detail/io/random.hpp"
#include "weir/tls/crypto/detail/aes_gcm.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/tls/crypto/detail/sha2.hpp"
#include "weir/tls/crypto/detail/verification_key.hpp"
#include "weir/tls/detail/absent/no_openssl.hpp"

namespace weir::tls::detail {
namespace {

using Sha256 = Sha2<std::uint32_t>;
using Sha512 = Sha2<std::uint64_t>;  // also of SHA-384

Sha512 long_hash(Hash hash) noexcept {
  return Sha512(hash == Hash::sha_384 ? sha384_initial : sha512_initial);
}

/// Returns the hash in a state. Both kinds are trivial.
template <class Sha, class State>
Sha* hash_in(State& state) noexcept {
  static_assert(sizeof(Sha) <= sizeof(State) && alignof(Sha) <= alignof(State));
  return std::launder(reinterpret_cast<Sha*>(state.words.data()));
}

VerificationKey::Outcome no_public_keys() {
  return std::unexpected(std::string_view(no_openssl_text));
}

}  // namespace

// --- hashes --------------------------------------------------------------------------------------

void digest(Hash hash, Bytes bytes, std::span<std::uint8_t> target) noexcept {
  assert(target.size() == digest_bytes_of(hash));
  if (hash == Hash::sha_256) {
    Sha256 sha(sha256_initial);
    sha.update(bytes);
    sha.finish(target);
    explicit_bzero(&sha, sizeof sha);
  } else {
    Sha512 sha = long_hash(hash);
    sha.update(bytes);
    sha.finish(target);
    explicit_bzero(&sha, sizeof sha);
  }
}

void Hmac::init(State& state) const noexcept {
  state.words.fill(0);
  if (hash_ == Hash::sha_256) {
    ::new (state.words.data()) Sha256(sha256_initial);
  } else {
    ::new (state.words.data()) Sha512(long_hash(hash_));
  }
}

void Hmac::add(State& state, const void* data, std::size_t size) const noexcept {
  const Bytes bytes(static_cast<const std::byte*>(data), size);
  hash_ == Hash::sha_256 ? hash_in<Sha256>(state)->update(bytes)
                         : hash_in<Sha512>(state)->update(bytes);
}

void Hmac::end(State& state, std::uint8_t* target) const noexcept {
  const std::span<std::uint8_t> digest(target, digest_bytes_of(hash_));
  hash_ == Hash::sha_256 ? hash_in<Sha256>(state)->finish(digest)
                         : hash_in<Sha512>(state)->finish(digest);
}

// --- random numbers ------------------------------------------------------------------------------

bool fill_random(MutableBytes target) noexcept {
  weir::detail::RandomSource* const source = weir::detail::RandomSource::current();
  if (source == nullptr) {
    os::fill_random(target);
    return true;
  }
  while (!target.empty()) {
    const std::uint64_t number = source->random();
    const std::size_t count = std::min(target.size(), sizeof number);
    std::memcpy(target.data(), &number, count);
    target = target.subspan(count);
  }
  return true;
}

// --- what needs OpenSSL --------------------------------------------------------------------------

AesGcmKey::AesGcmKey(Bytes key) noexcept {
  assert(key.size() == key_.size());
  std::memcpy(key_.data(), key.data(), key_.size());
}

bool AesGcmKey::seal(Bytes, Bytes, std::byte*) const noexcept {
  return false;
}

std::optional<MutableBytes> AesGcmKey::open(Bytes, MutableBytes) const noexcept {
  return std::nullopt;
}

VerificationKey::Outcome VerificationKey::from_pem(std::string_view) {
  return no_public_keys();
}

VerificationKey::Outcome VerificationKey::rsa(Bytes, Bytes) {
  return no_public_keys();
}

VerificationKey::Outcome VerificationKey::ec(Curve, Bytes, Bytes) {
  return no_public_keys();
}

VerificationKey::Outcome VerificationKey::ed25519(Bytes) {
  return no_public_keys();
}

bool VerificationKey::verify_public(SignatureAlgorithm, Bytes, Bytes) const noexcept {
  return false;
}

}  // namespace weir::tls::detail
