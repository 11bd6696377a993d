// Tests of keys that verify signatures: vectors of RFC 7515 and RFC 8037, and keys of OpenSSL.
#include "weir/tls/crypto/detail/verification_key.hpp"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/text/detail/base64.hpp"

namespace weir::tls::detail::verification_key_test {
namespace {

using Algorithm = SignatureAlgorithm;

std::string from_base64url(std::string_view text) {
  std::vector<std::byte> room(base64_bytes_max(text.size()));
  const std::optional<std::size_t> size = read_base64url(text, room.data());
  return size ? std::string(to_text(Bytes(room).first(*size))) : std::string("not base64url");
}

/// Verifies a token of the compact form (RFC 7515 §7.1).
bool verify_token(const VerificationKey& key, Algorithm algorithm, std::string_view token) {
  const std::size_t dot = token.rfind('.');
  const std::string signature = from_base64url(token.substr(dot + 1));
  return key.verify(algorithm, to_bytes(token.substr(0, dot)), to_bytes(signature));
}

VerificationKey valid(VerificationKey::Outcome key) {
  EXPECT_TRUE(key.has_value()) << key.error();
  return *key;
}

// RFC 7515 A.1
TEST(VerificationKey, VerifiesTheTokenOfHmac) {
  const std::string secret = from_base64url(
      "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
  const auto key = valid(VerificationKey::from_secret(to_bytes(secret)));
  const std::string token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
      "cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  EXPECT_TRUE(verify_token(key, Algorithm::hs256, token));
  EXPECT_FALSE(verify_token(key, Algorithm::hs384, token));
  EXPECT_FALSE(verify_token(key, Algorithm::hs256, "x" + token));
}

// RFC 7515 A.3
TEST(VerificationKey, VerifiesTheTokenOfEcdsa) {
  const std::string x = from_base64url("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU");
  const std::string y = from_base64url("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0");
  const auto key =
      valid(VerificationKey::ec(VerificationKey::Curve::p256, to_bytes(x), to_bytes(y)));
  const std::string token =
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
      "cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6N"
      "U1Q";
  EXPECT_TRUE(verify_token(key, Algorithm::es256, token));
  EXPECT_FALSE(verify_token(key, Algorithm::es256, "x" + token));
  EXPECT_FALSE(verify_token(key, Algorithm::es384, token));
}

// RFC 8037 A.4
TEST(VerificationKey, VerifiesTheTokenOfEd25519) {
  const std::string x = from_base64url("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  const auto key = valid(VerificationKey::ed25519(to_bytes(x)));
  const std::string token =
      "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
      "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
  EXPECT_TRUE(verify_token(key, Algorithm::eddsa, token));
  EXPECT_FALSE(verify_token(key, Algorithm::eddsa, "x" + token));
}

// Keys of OpenSSL, which signs here.

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;

std::string pem_of(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(PEM_write_bio_PUBKEY(bio, key), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

std::string big_endian(const BIGNUM* number, int size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size);
  return bytes;
}

/// Returns a member of the key, such as "n", big-endian.
std::string member(EVP_PKEY* key, const char* name, int size = 0) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key, name, &number), 1);
  std::string bytes = big_endian(number, size == 0 ? BN_num_bytes(number) : size);
  BN_free(number);
  return bytes;
}

struct SignOptions {
  const EVP_MD* hash = nullptr;
  bool pss = false;
};

std::string sign(EVP_PKEY* key, SignOptions options, std::string_view message) {
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* padding = nullptr;
  EXPECT_EQ(EVP_DigestSignInit(context, &padding, options.hash, nullptr, key), 1);
  if (options.pss) {
    EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, RSA_PSS_SALTLEN_DIGEST);
  }
  std::size_t size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  EXPECT_EQ(EVP_DigestSign(context, nullptr, &size, data, message.size()), 1);
  std::string signature(size, '\0');
  auto* target = reinterpret_cast<unsigned char*>(signature.data());
  EXPECT_EQ(EVP_DigestSign(context, target, &size, data, message.size()), 1);
  signature.resize(size);
  EVP_MD_CTX_free(context);
  return signature;
}

/// Converts a signature of ECDSA in DER to the form of JSON Web Signature.
std::string to_raw(const std::string& der, int size) {
  const auto* data = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* const pair = d2i_ECDSA_SIG(nullptr, &data, static_cast<long>(der.size()));
  std::string raw =
      big_endian(ECDSA_SIG_get0_r(pair), size) + big_endian(ECDSA_SIG_get0_s(pair), size);
  ECDSA_SIG_free(pair);
  return raw;
}

/// Expects that only one of all algorithms verifies the signature, and only for this message.
void expect_verifies(const VerificationKey& key, Algorithm right, std::string_view message,
                     std::string signature) {
  for (int each = 0; each <= static_cast<int>(Algorithm::eddsa); ++each) {
    const auto algorithm = static_cast<Algorithm>(each);
    EXPECT_EQ(key.verify(algorithm, to_bytes(message), to_bytes(signature)), algorithm == right)
        << name_of(algorithm) << " for " << name_of(right);
  }
  EXPECT_FALSE(key.verify(right, to_bytes("another message"), to_bytes(signature)));
  EXPECT_FALSE(key.verify(right, to_bytes(message), to_bytes(signature + "x")));
  EXPECT_FALSE(key.verify(right, to_bytes(message), Bytes()));
  const auto shorter = std::string_view(signature).substr(1);
  EXPECT_FALSE(key.verify(right, to_bytes(message), to_bytes(shorter)));
  signature[signature.size() / 2] = static_cast<char>(signature[signature.size() / 2] ^ 1);
  EXPECT_FALSE(key.verify(right, to_bytes(message), to_bytes(signature)));
}

TEST(VerificationKey, VerifiesBothPaddingsOfRsaWithEachHash) {
  const KeyPtr pair(EVP_RSA_gen(2048));
  const std::string n = member(pair.get(), OSSL_PKEY_PARAM_RSA_N);
  const std::string e = member(pair.get(), OSSL_PKEY_PARAM_RSA_E);
  const std::vector<VerificationKey> keys{valid(VerificationKey::from_pem(pem_of(pair.get()))),
                                          valid(VerificationKey::rsa(to_bytes(n), to_bytes(e)))};
  const std::vector<const EVP_MD*> hashes{EVP_sha256(), EVP_sha384(), EVP_sha512()};
  for (const VerificationKey& key : keys) {
    for (int index = 0; index < 3; ++index) {
      const EVP_MD* const hash = hashes[static_cast<std::size_t>(index)];
      expect_verifies(key, static_cast<Algorithm>(static_cast<int>(Algorithm::rs256) + index),
                      "message", sign(pair.get(), {.hash = hash}, "message"));
      expect_verifies(key, static_cast<Algorithm>(static_cast<int>(Algorithm::ps256) + index),
                      "message", sign(pair.get(), {.hash = hash, .pss = true}, "message"));
    }
  }
}

// One signature of 256 begins with a zero. Without this byte, it is the same number.
TEST(VerificationKey, RefusesASignatureOfRsaWithoutItsLeadingZero) {
  const KeyPtr pair(EVP_RSA_gen(2048));
  const VerificationKey key = valid(VerificationKey::from_pem(pem_of(pair.get())));
  for (const bool pss : {false, true}) {
    std::string message = "message";
    std::string signature;
    do {
      message += '.';
      signature = sign(pair.get(), {.hash = EVP_sha256(), .pss = pss}, message);
    } while (signature.front() != 0 && message.size() < 8192);
    ASSERT_EQ(signature.front(), 0);
    expect_verifies(key, pss ? Algorithm::ps256 : Algorithm::rs256, message, signature);
  }
}

TEST(VerificationKey, VerifiesEachCurve) {
  struct Case {
    const char* group;
    VerificationKey::Curve curve;
    Algorithm algorithm;
    const EVP_MD* hash;
    int size;
  };
  using Curve = VerificationKey::Curve;
  for (const Case& each : {Case{"P-256", Curve::p256, Algorithm::es256, EVP_sha256(), 32},
                           Case{"P-384", Curve::p384, Algorithm::es384, EVP_sha384(), 48},
                           Case{"P-521", Curve::p521, Algorithm::es512, EVP_sha512(), 66}}) {
    const KeyPtr pair(EVP_EC_gen(each.group));
    const std::string signature =
        to_raw(sign(pair.get(), {.hash = each.hash}, "message"), each.size);
    const std::string x = member(pair.get(), OSSL_PKEY_PARAM_EC_PUB_X, each.size);
    const std::string y = member(pair.get(), OSSL_PKEY_PARAM_EC_PUB_Y, each.size);
    expect_verifies(valid(VerificationKey::from_pem(pem_of(pair.get()))), each.algorithm, "message",
                    signature);
    expect_verifies(valid(VerificationKey::ec(each.curve, to_bytes(x), to_bytes(y))),
                    each.algorithm, "message", signature);
    EXPECT_FALSE(VerificationKey::ec(each.curve, to_bytes(x), to_bytes(x)).has_value());
    EXPECT_FALSE(VerificationKey::ec(each.curve, to_bytes(x.substr(1)), to_bytes(y)).has_value());
  }
}

TEST(VerificationKey, VerifiesEd25519FromPem) {
  const KeyPtr pair(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  expect_verifies(valid(VerificationKey::from_pem(pem_of(pair.get()))), Algorithm::eddsa, "message",
                  sign(pair.get(), {}, "message"));
}

TEST(VerificationKey, RefusesASignatureOfZeros) {
  const KeyPtr pair(EVP_EC_gen("P-256"));  // CVE-2022-21449
  const auto key = valid(VerificationKey::from_pem(pem_of(pair.get())));
  EXPECT_FALSE(key.verify(Algorithm::es256, to_bytes("message"), to_bytes(std::string(64, '\0'))));
}

TEST(VerificationKey, NeverUsesAPublicKeyAsASecret) {
  const KeyPtr pair(EVP_RSA_gen(2048));
  const std::string pem = pem_of(pair.get());
  const auto key = valid(VerificationKey::from_pem(pem));
  EXPECT_FALSE(key.accepts(Algorithm::hs256));
  EXPECT_TRUE(key.accepts(Algorithm::rs256));
}

TEST(VerificationKey, DemandsASecretOfTheSizeOfTheDigest) {
  EXPECT_FALSE(VerificationKey::from_secret(to_bytes(std::string(31, 'x'))).has_value());
  const auto shorter = valid(VerificationKey::from_secret(to_bytes(std::string(32, 'x'))));
  EXPECT_TRUE(shorter.accepts(Algorithm::hs256));
  EXPECT_FALSE(shorter.accepts(Algorithm::hs384));
  const auto longer = valid(VerificationKey::from_secret(to_bytes(std::string(64, 'x'))));
  EXPECT_TRUE(longer.accepts(Algorithm::hs512));
  EXPECT_FALSE(longer.accepts(Algorithm::rs256));
}

TEST(VerificationKey, RefusesWeakAndMalformedKeys) {
  const auto reason = [](VerificationKey::Outcome key) {
    return key ? std::string_view("accepted") : key.error();
  };
  const KeyPtr small(EVP_RSA_gen(1024));
  EXPECT_EQ(reason(VerificationKey::from_pem(pem_of(small.get()))),
            "the RSA key has fewer than 2048 bits");
  const KeyPtr other_curve(EVP_EC_gen("secp256k1"));
  EXPECT_EQ(reason(VerificationKey::from_pem(pem_of(other_curve.get()))),
            "the curve is not P-256, P-384 or P-521");
  const KeyPtr exchange(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  EXPECT_EQ(reason(VerificationKey::from_pem(pem_of(exchange.get()))),
            "the public key is not one of RSA, ECDSA or Ed25519");
  for (const std::string_view text :
       {"", "text", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}) {
    EXPECT_EQ(reason(VerificationKey::from_pem(text)), "not a valid public key");
  }
  EXPECT_EQ(reason(VerificationKey::from_pem(std::string(16385, '-'))),
            "the PEM text has more than 16 KiB");
  const std::string n(256, '\xff');
  EXPECT_EQ(reason(VerificationKey::rsa(to_bytes(n), to_bytes("\x01"))),
            "the exponent is even or 1");
  EXPECT_EQ(reason(VerificationKey::rsa(to_bytes(n), Bytes())),
            "the exponent does not have 1 to 8 bytes");
  EXPECT_EQ(reason(VerificationKey::rsa(to_bytes(n.substr(1)), to_bytes("\x03"))),
            "the RSA key has fewer than 2048 bits");
  EXPECT_EQ(reason(VerificationKey::rsa(to_bytes(std::string(1026, '\xff')), to_bytes("\x03"))),
            "the RSA key has more than 8192 bits");
  EXPECT_EQ(reason(VerificationKey::ed25519(to_bytes(n))), "x does not have 32 bytes");
}

TEST(SignatureAlgorithm, HasTheNamesOfTheRfc) {
  for (int each = 0; each <= static_cast<int>(Algorithm::eddsa); ++each) {
    const auto algorithm = static_cast<Algorithm>(each);
    EXPECT_EQ(signature_algorithm(name_of(algorithm)), algorithm);
  }
  for (const std::string_view name : {"none", "None", "", "hs256", "HS256 ", "ES256K", "RS1"}) {
    EXPECT_EQ(signature_algorithm(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace weir::tls::detail::verification_key_test
