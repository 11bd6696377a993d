#include "weir/tls/crypto/detail/verification_key.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "weir/base/text/detail/constant_time.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::array<std::string_view, 13> names{"HS256", "HS384", "HS512", "RS256", "RS384",
                                                 "RS512", "PS256", "PS384", "PS512", "ES256",
                                                 "ES384", "ES512", "EdDSA"};

}  // namespace

/// The states of HMAC after the secret, so that a verification reads the secret no more.
struct VerificationKey::SecretKeys {
  explicit SecretKeys(Bytes secret) noexcept
      : hmacs{Hmac(Hash::sha_256, secret), Hmac(Hash::sha_384, secret),
              Hmac(Hash::sha_512, secret)} {}
  std::array<Hmac, 3> hmacs;
};

std::optional<SignatureAlgorithm> signature_algorithm(std::string_view name) noexcept {
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (names[index] == name) return static_cast<SignatureAlgorithm>(index);
  }
  return std::nullopt;
}

Hash hash_of(SignatureAlgorithm algorithm) noexcept {
  constexpr std::array hashes{Hash::sha_256, Hash::sha_384, Hash::sha_512};
  return hashes[static_cast<std::size_t>(algorithm) % hashes.size()];  // the order of the enum
}

std::string_view name_of(SignatureAlgorithm algorithm) noexcept {
  return names[static_cast<std::size_t>(algorithm)];
}

VerificationKey::Outcome VerificationKey::from_secret(Bytes secret) {
  if (secret.size() < digest_bytes_of(Hash::sha_256)) {
    return std::unexpected("the secret has fewer than 32 bytes");
  }
  VerificationKey key(Kind::secret, nullptr);
  key.secret_bytes_ = secret.size();
  key.secret_ = std::make_shared<const SecretKeys>(secret);
  return key;
}

bool VerificationKey::accepts(SignatureAlgorithm algorithm) const noexcept {
  switch (kind_) {
    case Kind::secret:
      return algorithm <= SignatureAlgorithm::hs512 &&
             secret_bytes_ >= digest_bytes_of(hash_of(algorithm));
    case Kind::rsa:
      return algorithm >= SignatureAlgorithm::rs256 && algorithm <= SignatureAlgorithm::ps512;
    case Kind::p256:
      return algorithm == SignatureAlgorithm::es256;
    case Kind::p384:
      return algorithm == SignatureAlgorithm::es384;
    case Kind::p521:
      return algorithm == SignatureAlgorithm::es512;
    case Kind::ed25519:
      break;
  }
  return algorithm == SignatureAlgorithm::eddsa;
}

bool VerificationKey::verify(SignatureAlgorithm algorithm, Bytes message,
                             Bytes signature) const noexcept {
  if (!accepts(algorithm)) return false;
  return kind_ == Kind::secret ? verify_secret(algorithm, message, signature)
                               : verify_public(algorithm, message, signature);
}

bool VerificationKey::verify_secret(SignatureAlgorithm algorithm, Bytes message,
                                    Bytes signature) const noexcept {
  Hmac hmac = secret_->hmacs[static_cast<std::size_t>(algorithm)];
  std::array<std::uint8_t, 64> room{};
  const auto digest = std::span(room).first(digest_bytes_of(hash_of(algorithm)));
  hmac.update(message);
  hmac.finish(digest);
  return constant_time_equal(std::as_bytes(digest), signature);
}

}  // namespace weir::tls::detail
