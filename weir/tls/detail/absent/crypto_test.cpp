// Tests what a build without OpenSSL has of keys: secrets, but neither public keys nor encryption.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/text/detail/base64.hpp"
#include "weir/tls/crypto/detail/aes_gcm.hpp"
#include "weir/tls/crypto/detail/verification_key.hpp"
#include "weir/tls/detail/absent/no_openssl.hpp"

namespace weir::tls::detail::crypto_test {
namespace {

std::string from_base64url(std::string_view text) {
  std::string bytes(base64_bytes_max(text.size()), '\0');
  const auto size = read_base64url(text, reinterpret_cast<std::byte*>(bytes.data()));
  bytes.resize(size.value_or(0));
  return bytes;
}

// RFC 7515 A.1
TEST(CryptoAbsent, VerifiesTheTokenOfASecret) {
  const std::string secret = from_base64url(
      "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
  const auto key = VerificationKey::from_secret(to_bytes(secret));
  ASSERT_TRUE(key);
  const std::string_view message =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
      "cnVlfQ";
  const std::string signature = from_base64url("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
  EXPECT_TRUE(key->verify(SignatureAlgorithm::hs256, to_bytes(message), to_bytes(signature)));
  EXPECT_FALSE(key->verify(SignatureAlgorithm::hs256, to_bytes("x"), to_bytes(signature)));
}

TEST(CryptoAbsent, HasNoPublicKeys) {
  const std::array<std::byte, 32> bytes{};
  EXPECT_EQ(VerificationKey::from_pem("").error(), no_openssl_text);
  EXPECT_EQ(VerificationKey::rsa(bytes, bytes).error(), no_openssl_text);
  EXPECT_EQ(VerificationKey::ec(VerificationKey::Curve::p256, bytes, bytes).error(),
            no_openssl_text);
  EXPECT_EQ(VerificationKey::ed25519(bytes).error(), no_openssl_text);
}

TEST(CryptoAbsent, SealsAndOpensNothing) {
  const AesGcmKey key(to_bytes("a secret of high entropy"), "label");
  std::array<std::byte, 8 + AesGcmKey::overhead> sealed{};
  EXPECT_FALSE(key.seal({}, to_bytes("12345678"), sealed.data()));
  EXPECT_FALSE(key.open({}, sealed));
}

}  // namespace
}  // namespace weir::tls::detail::crypto_test
