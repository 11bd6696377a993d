// Tests of AES-256-GCM.
#include "weir/tls/crypto/detail/aes_gcm.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail::aes_gcm_test {
namespace {

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

std::string seal(const AesGcmKey& key, std::string_view associated, std::string_view plain) {
  std::string sealed(plain.size() + AesGcmKey::overhead, '\0');
  EXPECT_TRUE(
      key.seal(to_bytes(associated), to_bytes(plain), reinterpret_cast<std::byte*>(sealed.data())));
  return sealed;
}

std::optional<std::string> open(const AesGcmKey& key, std::string_view associated,
                                std::string sealed) {
  const MutableBytes bytes = std::as_writable_bytes(std::span(sealed));
  const std::optional<MutableBytes> plain = key.open(to_bytes(associated), bytes);
  if (!plain) return std::nullopt;
  return std::string(to_text(*plain));
}

const AesGcmKey& key() {
  static const AesGcmKey one(to_bytes("a secret"), "test");
  return one;
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", test case 16
TEST(AesGcm, OpensTheVectorOfTheSpecification) {
  const std::string bytes =
      from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const AesGcmKey vector_key(to_bytes(bytes));
  const std::string sealed = from_hex(
      "cafebabefacedbaddecaf888"
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
      "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
      "76fc6ece0f4e1768cddf8853bb2d551b");
  const std::string associated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  EXPECT_EQ(open(vector_key, associated, sealed),
            from_hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"));
}

TEST(AesGcm, OpensWhatItSealed) {
  for (const std::string_view plain : {"", "x", "a longer message of more than one block"}) {
    EXPECT_EQ(open(key(), "name", seal(key(), "name", plain)), plain);
    EXPECT_EQ(open(key(), "", seal(key(), "", plain)), plain);
  }
}

TEST(AesGcm, SealsWithAnotherNonceEachTime) {
  EXPECT_NE(seal(key(), "", "message").substr(0, 12), seal(key(), "", "message").substr(0, 12));
}

TEST(AesGcm, RefusesEachChangedByte) {
  const std::string sealed = seal(key(), "name", "message");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(open(key(), "name", changed), std::nullopt) << at;
  }
}

TEST(AesGcm, RefusesOtherDataOtherKeysAndShortMessages) {
  const std::string sealed = seal(key(), "name", "message");
  EXPECT_EQ(open(key(), "nam", sealed), std::nullopt);
  EXPECT_EQ(open(AesGcmKey(to_bytes("a secret"), "other"), "name", sealed), std::nullopt);
  EXPECT_EQ(open(AesGcmKey(to_bytes("another"), "test"), "name", sealed), std::nullopt);
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_EQ(open(key(), "name", sealed.substr(0, size)), std::nullopt) << size;
  }
}

}  // namespace
}  // namespace weir::tls::detail::aes_gcm_test
