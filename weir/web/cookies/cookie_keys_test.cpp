// Tests of the keys of cookies: tampered, expired and foreign texts, and rotation.
#include "weir/web/cookies/cookie_keys.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/web/cookies/set_cookie.hpp"

namespace weir::http::cookie_keys_test {
namespace {

using namespace std::chrono_literals;

constexpr WallTime now(1'000'000s);
constexpr WallTime later = now + 60s;

std::string secret(char of) {
  return std::string(32, of);
}

CookieKeys keys_of(std::initializer_list<char> secrets) {
  std::vector<std::string> all;
  for (const char each : secrets) all.push_back(secret(each));
  return CookieKeys::from_secrets(all).value();
}

class CookieKeysTest : public testing::TestWithParam<CookieProtection> {
 protected:
  std::string seal(const CookieKeys& keys, std::string_view value = "value",
                   std::string_view name = "name") {
    return keys.seal(GetParam(), name, value, later).value();
  }
  std::optional<std::string> open(const CookieKeys& keys, std::string_view text,
                                  std::string_view name = "name", WallTime time = now) {
    return keys.open(GetParam(), name, text, time);
  }
};

TEST_P(CookieKeysTest, OpensWhatItSealed) {
  const CookieKeys keys = keys_of({'a'});
  for (const std::string_view value : {std::string_view(), std::string_view("value"),
                                       std::string_view("any \0 \xff bytes;", 14)}) {
    EXPECT_EQ(open(keys, seal(keys, value)), value);
  }
  EXPECT_EQ(to_header({.name = "name", .value = seal(keys)}).has_value(), true);
}

TEST_P(CookieKeysTest, RefusesEachChangedCharacter) {
  const CookieKeys keys = keys_of({'a'});
  const std::string text = seal(keys);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = text[at] == 'A' ? 'B' : 'A';
    EXPECT_EQ(open(keys, changed), std::nullopt) << at;
    EXPECT_EQ(open(keys, text.substr(0, at)), std::nullopt) << at;
    EXPECT_EQ(open(keys, text.substr(at + 1)), std::nullopt) << at;
  }
  EXPECT_EQ(open(keys, text + "A"), std::nullopt);
  EXPECT_EQ(open(keys, text + "="), std::nullopt);
}

TEST_P(CookieKeysTest, BindsTheNameIn) {
  const CookieKeys keys = keys_of({'a'});
  EXPECT_EQ(open(keys, seal(keys), "other"), std::nullopt);
  EXPECT_EQ(open(keys, seal(keys, "bvalue", "a"), "ab"), std::nullopt);
  EXPECT_EQ(open(keys, seal(keys, "value", "ab"), "a"), std::nullopt);
}

TEST_P(CookieKeysTest, EndsAtItsExpiry) {
  const CookieKeys keys = keys_of({'a'});
  const std::string text = seal(keys);
  EXPECT_EQ(open(keys, text, "name", later - 1s), "value");
  EXPECT_EQ(open(keys, text, "name", later), std::nullopt);
  EXPECT_EQ(open(keys, text, "name", later + 1h), std::nullopt);
}

TEST_P(CookieKeysTest, FirstKeySealsAndAllKeysOpen) {
  const std::string old = seal(keys_of({'a'}));
  const CookieKeys rotated = keys_of({'b', 'a'});
  EXPECT_EQ(open(rotated, old), "value");
  const std::string fresh = seal(rotated);
  EXPECT_EQ(open(keys_of({'a'}), fresh), std::nullopt);
  EXPECT_EQ(open(keys_of({'b'}), fresh), "value");
  EXPECT_EQ(open(keys_of({'c', 'd'}), old), std::nullopt);
}

TEST_P(CookieKeysTest, DoesNotOpenTheOtherProtection) {
  const CookieKeys keys = keys_of({'a'});
  const auto other = GetParam() == CookieProtection::signed_value
                         ? CookieProtection::encrypted_value
                         : CookieProtection::signed_value;
  EXPECT_EQ(open(keys, keys.seal(other, "name", "value", later).value()), std::nullopt);
}

TEST_P(CookieKeysTest, SealsNoMoreThanACookieHolds) {
  const CookieKeys keys = keys_of({'a'});
  std::size_t longest = 0;
  for (std::size_t size = 2900; size < 3200; ++size) {
    const auto text = keys.seal(GetParam(), "name", std::string(size, 'x'), later);
    if (!text) {
      EXPECT_EQ(text.error(), Errc::limit_reached);
      break;
    }
    EXPECT_EQ(open(keys, *text), std::string(size, 'x'));
    EXPECT_LE(text->size() + 4, SetCookie::bytes_max);
    longest = size;
  }
  EXPECT_GT(longest, 3000U);
  EXPECT_LT(longest, 3100U);
  EXPECT_FALSE(keys.seal(GetParam(), "name", std::string(1 << 20, 'x'), later));
  EXPECT_EQ(open(keys, std::string(1 << 20, 'x')), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Of, CookieKeysTest,
                         testing::Values(CookieProtection::signed_value,
                                         CookieProtection::encrypted_value),
                         [](const auto& of) {
                           return of.param == CookieProtection::signed_value ? "Signed"
                                                                             : "Encrypted";
                         });

TEST(CookieKeys, EncryptionHidesTheValue) {
  const CookieKeys keys = keys_of({'a'});
  const auto seal = [&keys] {
    return keys.seal(CookieProtection::encrypted_value, "name", "value", later).value();
  };
  EXPECT_NE(seal(), seal());  // a new nonce each time
}

TEST(CookieKeys, DemandsOneToEightSecretsOf32Bytes) {
  EXPECT_EQ(CookieKeys::from_secrets({}).error(), Errc::bad_configuration);
  EXPECT_EQ(CookieKeys::from_secret(std::string(31, 'x')).error(), Errc::bad_configuration);
  EXPECT_TRUE(CookieKeys::from_secrets(std::vector(8, secret('a'))));
  EXPECT_EQ(CookieKeys::from_secrets(std::vector(9, secret('a'))).error(), Errc::bad_configuration);
}

TEST(CookieKeys, RandomKeysDiffer) {
  const CookieKeys one = CookieKeys::random().value();
  const CookieKeys other = CookieKeys::random().value();
  const std::string text = one.seal(CookieProtection::signed_value, "a", "b", later).value();
  EXPECT_EQ(one.open(CookieProtection::signed_value, "a", text, now), "b");
  EXPECT_EQ(other.open(CookieProtection::signed_value, "a", text, now), std::nullopt);
}

}  // namespace
}  // namespace weir::http::cookie_keys_test
