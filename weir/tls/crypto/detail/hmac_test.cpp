// Tests of digests, HMAC and HKDF by the vectors of the RFCs.
#include "weir/tls/crypto/detail/hmac.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail::hmac_test {
namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t each : bytes) {
    text += digits[each >> 4];
    text += digits[each & 15];
  }
  return text;
}

std::string hmac(Hash hash, std::string_view key, std::string_view message) {
  std::array<std::uint8_t, 64> room{};
  const auto target = std::span(room).first(digest_bytes_of(hash));
  Hmac one(hash, to_bytes(key));
  one.update(message);
  one.finish(target);
  return hex(target);
}

// RFC 4231 §4.3
TEST(Hmac, MatchesTheVectorsOfTheRfc) {
  constexpr std::string_view message = "what do ya want for nothing?";
  EXPECT_EQ(hmac(Hash::sha_256, "Jefe", message),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(Hash::sha_384, "Jefe", message),
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"
            "8e2240ca5e69e2c78b3239ecfab21649");
  EXPECT_EQ(hmac(Hash::sha_512, "Jefe", message),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737");
}

// RFC 4231 §4.7
TEST(Hmac, HashesAKeyThatIsLongerThanABlock) {
  const std::string key(131, '\xaa');
  constexpr std::string_view message = "Test Using Larger Than Block-Size Key - Hash Key First";
  EXPECT_EQ(hmac(Hash::sha_256, key, message),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(Hash::sha_512, key, message),
            "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
            "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598");
}

TEST(Hmac, BeginsTheNextMessageAfterOne) {
  Hmac one(Hash::sha_512, to_bytes("Jefe"));
  std::array<std::uint8_t, 64> first{};
  std::array<std::uint8_t, 64> second{};
  one.update(std::string_view("what do ya want "));
  one.update(std::string_view("for nothing?"));
  one.finish(first);
  one.update(std::string_view("dropped"));
  one.restart();
  one.update(std::string_view("what do ya want for nothing?"));
  one.finish(second);
  EXPECT_EQ(first, second);
}

TEST(Digest, MatchesTheVectorsOfTheStandard) {
  std::array<std::uint8_t, 64> room{};
  digest(Hash::sha_512, to_bytes("abc"), room);
  EXPECT_EQ(hex(room),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

// RFC 5869 A.3 with the first 32 of its 42 bytes, which has neither salt nor info.
TEST(DeriveKey, MatchesTheVectorOfTheRfc) {
  const std::string secret(22, '\x0b');
  Secret<32> key;
  derive_key(to_bytes(secret), "", key);
  EXPECT_EQ(hex(key), "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

TEST(DeriveKey, MakesAnotherKeyForEachLabelAndSecret) {
  Secret<32> a;
  Secret<32> b;
  Secret<32> c;
  derive_key(to_bytes("secret"), "a", a);
  derive_key(to_bytes("secret"), "b", b);
  derive_key(to_bytes("other"), "a", c);
  EXPECT_NE(hex(a), hex(b));
  EXPECT_NE(hex(a), hex(c));
}

}  // namespace
}  // namespace weir::tls::detail::hmac_test
