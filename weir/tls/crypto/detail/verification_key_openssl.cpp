// The public keys of verification_key.hpp, by OpenSSL.
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/octets.hpp"
#include "weir/tls/crypto/detail/verification_key.hpp"

namespace weir::tls::detail {
namespace {

constexpr int rsa_bits_min = 2048;  // RFC 7518 §3.3
constexpr int rsa_bits_max = 8192;  // a verification takes about a millisecond
constexpr std::size_t exponent_bytes_max = 8;
constexpr std::size_t pem_bytes_max = 16384;
constexpr std::size_t ed25519_bytes = 32;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
template <class T, auto Free>
using Ptr = std::unique_ptr<T, Deleter<Free>>;
using NumberPtr = Ptr<BIGNUM, BN_free>;
using DigestPtr = Ptr<EVP_MD_CTX, EVP_MD_CTX_free>;
using BuilderPtr = Ptr<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using ParamsPtr = Ptr<OSSL_PARAM, OSSL_PARAM_free>;
using KeyContextPtr = Ptr<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using SignaturePtr = Ptr<ECDSA_SIG, ECDSA_SIG_free>;

NumberPtr number_of(Bytes bytes) {
  return NumberPtr(BN_bin2bn(data_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

const char* digest_of(SignatureAlgorithm algorithm) {
  switch (hash_of(algorithm)) {
    case Hash::sha_256:
      return "SHA256";
    case Hash::sha_384:
      return "SHA384";
    case Hash::sha_512:
      break;
  }
  return "SHA512";
}

bool is_ecdsa(SignatureAlgorithm algorithm) {
  return algorithm >= SignatureAlgorithm::es256 && algorithm <= SignatureAlgorithm::es512;
}
bool is_pss(SignatureAlgorithm algorithm) {
  return algorithm >= SignatureAlgorithm::ps256 && algorithm <= SignatureAlgorithm::ps512;
}

/// Makes a public key of this type from parameters; nullptr if they are not valid.
EVP_PKEY* make_public(const char* type, OSSL_PARAM_BLD* builder) {
  const ParamsPtr params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContextPtr context(EVP_PKEY_CTX_new_from_name(library_context(), type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return key;
}

/// Returns the size of each of the two numbers of a signature.
std::size_t number_bytes_of(SignatureAlgorithm algorithm) {
  if (algorithm == SignatureAlgorithm::es256) return 32;
  return algorithm == SignatureAlgorithm::es384 ? 48 : 66;
}

/// Room for a signature of ECDSA in DER: two numbers of at most 67 bytes and three heads.
using DerRoom = std::array<unsigned char, 2 * (67 + 2) + 3>;

/// Writes a signature of ECDSA in DER, which OpenSSL verifies.
/// Returns: its bytes; empty for a signature of another size.
Bytes to_der(SignatureAlgorithm algorithm, Bytes signature, DerRoom& room) {
  const std::size_t size = number_bytes_of(algorithm);
  if (signature.size() != 2 * size) return {};
  const SignaturePtr pair(ECDSA_SIG_new());
  NumberPtr r = number_of(signature.first(size));
  NumberPtr s = number_of(signature.last(size));
  if (pair == nullptr || r == nullptr || s == nullptr ||
      ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1) {
    return {};
  }
  static_cast<void>(r.release());
  static_cast<void>(s.release());
  const int length = i2d_ECDSA_SIG(pair.get(), nullptr);
  if (length <= 0 || static_cast<std::size_t>(length) > room.size()) return {};
  unsigned char* target = room.data();
  i2d_ECDSA_SIG(pair.get(), &target);
  return std::as_bytes(std::span(room).first(static_cast<std::size_t>(length)));
}

}  // namespace

/// Takes a public key, or nullptr after an error of OpenSSL.
VerificationKey::Outcome VerificationKey::of_public(evp_pkey_st* key) {
  ERR_clear_error();
  if (key == nullptr) return std::unexpected("not a valid public key");
  std::shared_ptr<evp_pkey_st> owned(key, [](evp_pkey_st* each) { EVP_PKEY_free(each); });
  const int bits = EVP_PKEY_get_bits(key);
  if (EVP_PKEY_is_a(key, "RSA") == 1) {
    if (bits < rsa_bits_min) return std::unexpected("the RSA key has fewer than 2048 bits");
    if (bits > rsa_bits_max) return std::unexpected("the RSA key has more than 8192 bits");
    return VerificationKey(Kind::rsa, std::move(owned));
  }
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return VerificationKey(Kind::ed25519, std::move(owned));
  if (EVP_PKEY_is_a(key, "EC") != 1) {
    return std::unexpected("the public key is not one of RSA, ECDSA or Ed25519");
  }
  const KeyContextPtr context(EVP_PKEY_CTX_new_from_pkey(library_context(), key, nullptr));
  if (context == nullptr || EVP_PKEY_public_check(context.get()) != 1) {
    ERR_clear_error();
    return std::unexpected("the point is not on the curve");
  }
  std::array<char, 32> group{};
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), nullptr) == 1) {
    const std::string_view name(group.data());
    if (name == "prime256v1") return VerificationKey(Kind::p256, std::move(owned));
    if (name == "secp384r1") return VerificationKey(Kind::p384, std::move(owned));
    if (name == "secp521r1") return VerificationKey(Kind::p521, std::move(owned));
  }
  return std::unexpected("the curve is not P-256, P-384 or P-521");
}

VerificationKey::Outcome VerificationKey::from_pem(std::string_view pem) {
  if (pem.size() > pem_bytes_max) return std::unexpected("the PEM text has more than 16 KiB");
  const Ptr<BIO, BIO_free> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return std::unexpected("out of memory");
  const auto no_password = [](char*, int, int, void*) { return -1; };
  return of_public(
      PEM_read_bio_PUBKEY_ex(bio.get(), nullptr, no_password, nullptr, library_context(), nullptr));
}

VerificationKey::Outcome VerificationKey::rsa(Bytes n, Bytes e) {
  if (n.size() > rsa_bits_max / CHAR_BIT + 1) {
    return std::unexpected("the RSA key has more than 8192 bits");
  }
  if (e.empty() || e.size() > exponent_bytes_max) {
    return std::unexpected("the exponent does not have 1 to 8 bytes");
  }
  const NumberPtr modulus = number_of(n);
  const NumberPtr exponent = number_of(e);
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (modulus == nullptr || exponent == nullptr || builder == nullptr) {
    return std::unexpected("out of memory");
  }
  if (BN_is_odd(modulus.get()) == 0) return std::unexpected("the modulus is even");
  if (BN_is_odd(exponent.get()) == 0 || BN_is_one(exponent.get()) == 1) {
    return std::unexpected("the exponent is even or 1");
  }
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  return of_public(make_public("RSA", builder.get()));
}

VerificationKey::Outcome VerificationKey::ec(Curve curve, Bytes x, Bytes y) {
  constexpr std::array<const char*, 3> groups{"prime256v1", "secp384r1", "secp521r1"};
  constexpr std::array<std::size_t, 3> sizes{32, 48, 66};
  const auto index = static_cast<std::size_t>(curve);
  if (x.size() != sizes[index] || y.size() != sizes[index]) {
    return std::unexpected("x and y do not have the size of the curve");
  }
  std::array<unsigned char, 1 + 2 * sizes.back()> point{};
  point[0] = POINT_CONVERSION_UNCOMPRESSED;
  std::memcpy(&point[1], x.data(), x.size());
  std::memcpy(&point[1] + x.size(), y.data(), y.size());
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr) return std::unexpected("out of memory");
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, groups[index], 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   1 + 2 * x.size());
  return of_public(make_public("EC", builder.get()));
}

VerificationKey::Outcome VerificationKey::ed25519(Bytes x) {
  if (x.size() != ed25519_bytes) return std::unexpected("x does not have 32 bytes");
  return of_public(
      EVP_PKEY_new_raw_public_key_ex(library_context(), "ED25519", nullptr, data_of(x), x.size()));
}

bool VerificationKey::verify_public(SignatureAlgorithm algorithm, Bytes message,
                                    Bytes signature) const noexcept {
  DerRoom room;
  if (is_ecdsa(algorithm)) {
    signature = to_der(algorithm, signature, room);
    if (signature.empty()) return false;
  }
  if (kind_ == Kind::rsa && std::cmp_not_equal(signature.size(), EVP_PKEY_get_size(public_.get())))
    return false;  // OpenSSL does not check this for PSS
  const DigestPtr context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;  // of the context
  const char* const hash = algorithm == SignatureAlgorithm::eddsa ? nullptr : digest_of(algorithm);
  const bool right = context != nullptr &&
                     EVP_DigestVerifyInit_ex(context.get(), &options, hash, library_context(),
                                             nullptr, public_.get(), nullptr) == 1 &&
                     (!is_pss(algorithm) ||
                      (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
                       EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1)) &&
                     EVP_DigestVerify(context.get(), data_of(signature), signature.size(),
                                      data_of(message), message.size()) == 1;
  ERR_clear_error();
  return right;
}

}  // namespace weir::tls::detail
