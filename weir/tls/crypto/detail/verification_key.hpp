// VerificationKey: keys that verify the signatures of JSON Web Signature (RFC 7515, 7518, 8037).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"

struct evp_pkey_st;

namespace weir::tls::detail {

/// The algorithms of RFC 7518 §3.1 and RFC 8037. "none" is not among them.
enum class SignatureAlgorithm : std::uint8_t {
  hs256,
  hs384,
  hs512,
  rs256,
  rs384,
  rs512,
  ps256,
  ps384,
  ps512,
  es256,
  es384,
  es512,
  eddsa,
};

/// Returns the algorithm of a name such as "RS256", in this letter case; nullopt for other names.
std::optional<SignatureAlgorithm> signature_algorithm(std::string_view name) noexcept;
/// Returns the hash of an algorithm other than eddsa.
Hash hash_of(SignatureAlgorithm algorithm) noexcept;
/// Lifetime: the text lives as long as the process.
std::string_view name_of(SignatureAlgorithm algorithm) noexcept;

/// A key that verifies signatures: a shared secret (HMAC) or a public key. Its kind limits the
/// algorithms: a public key is never used as a secret. Copies share the key.
/// Threads: const members on any thread.
class VerificationKey {
 public:
  /// A key, or the reason why there is none: a constant text for the operator.
  using Outcome = std::expected<VerificationKey, std::string_view>;
  enum class Curve : std::uint8_t { p256, p384, p521 };

  /// Makes a key of HS256 from at least 32 bytes, and of HS384 and HS512 from at least 48 and 64:
  /// RFC 7518 §3.2 demands the size of the digest.
  static Outcome from_secret(Bytes secret);
  // Without OpenSSL, there are no public keys: the next four functions fail.

  /// Reads a public key of RSA, P-256, P-384, P-521 or Ed25519 in PEM ("BEGIN PUBLIC KEY").
  static Outcome from_pem(std::string_view pem);
  /// Makes a key of RSA from the members `n` and `e` of a JWK: big-endian numbers. The modulus has
  /// 2048 to 8192 bits.
  static Outcome rsa(Bytes n, Bytes e);
  /// Makes a key of ECDSA from the members `x` and `y` of a JWK, which have the size of the curve.
  static Outcome ec(Curve curve, Bytes x, Bytes y);
  /// Makes a key of Ed25519 from the member `x` of a JWK.
  static Outcome ed25519(Bytes x);

  /// Returns true if the key may verify signatures of this algorithm.
  bool accepts(SignatureAlgorithm algorithm) const noexcept;
  /// Returns true if `signature` is that of `message`. It is false if accepts() is false. ECDSA has
  /// the form of RFC 7518 §3.4: both numbers in a row, in the size of the curve. A signature of RSA
  /// has the size of the modulus (RFC 8017 §8.1.2, §8.2.2): leading zeros are not left out.
  bool verify(SignatureAlgorithm algorithm, Bytes message, Bytes signature) const noexcept;

 private:
  enum class Kind : std::uint8_t { secret, rsa, p256, p384, p521, ed25519 };
  VerificationKey(Kind kind, std::shared_ptr<evp_pkey_st> key) noexcept
      : kind_(kind), public_(std::move(key)) {}

  static Outcome of_public(evp_pkey_st* key);
  bool verify_secret(SignatureAlgorithm algorithm, Bytes message, Bytes signature) const noexcept;
  bool verify_public(SignatureAlgorithm algorithm, Bytes message, Bytes signature) const noexcept;

  Kind kind_;
  std::size_t secret_bytes_ = 0;
  std::shared_ptr<evp_pkey_st> public_;
  struct SecretKeys;
  std::shared_ptr<const SecretKeys> secret_;
};

}  // namespace weir::tls::detail
