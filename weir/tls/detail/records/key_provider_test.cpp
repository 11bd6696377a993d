// Tests Weir's key derivations through the interface of OpenSSL. OpenSSL's own are the judge.
#include "weir/tls/detail/records/key_provider.hpp"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/detail/records/handshake_keys.hpp"
#include "weir/tls/test/engine_fixture.hpp"

namespace weir::tls::detail::key_provider_test {
namespace {

struct KdfDeleter {
  void operator()(EVP_KDF* kdf) const noexcept { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const noexcept { EVP_KDF_CTX_free(context); }
};

/// The parameters of a derivation.
struct Given {
  std::string digest = "SHA256";
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  std::string key = std::string(32, 'k');
  std::string salt{};
  std::string prefix = "tls13 ";
  std::string label = "key";
  std::string data{};
};

class KeyProviderTest : public testing::Test {
 protected:
  using Params = std::vector<OSSL_PARAM>;

  KeyProviderTest() { query_ = use_key_provider(); }

  static OSSL_PARAM octets(const char* name, std::string& value) {
    return OSSL_PARAM_construct_octet_string(name, value.data(), value.size());
  }
  static OSSL_PARAM text(const char* name, std::string& value) {
    return OSSL_PARAM_construct_utf8_string(name, value.data(), 0);
  }
  /// Returns the parameters of TLS 1.3. Empty values are left out, as OpenSSL does.
  static Params params_1_3(Given& given) {
    Params made{text(OSSL_KDF_PARAM_DIGEST, given.digest),
                OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &given.mode),
                octets(OSSL_KDF_PARAM_PREFIX, given.prefix),
                octets(OSSL_KDF_PARAM_LABEL, given.label)};
    if (!given.key.empty()) made.push_back(octets(OSSL_KDF_PARAM_KEY, given.key));
    if (!given.salt.empty()) made.push_back(octets(OSSL_KDF_PARAM_SALT, given.salt));
    if (!given.data.empty()) made.push_back(octets(OSSL_KDF_PARAM_DATA, given.data));
    made.push_back(OSSL_PARAM_construct_end());
    return made;
  }
  /// Returns the derived bytes, or nullopt after a failure.
  static std::optional<std::string> derive(const char* query, const char* name,
                                           const Params& params, std::size_t size) {
    const std::unique_ptr<EVP_KDF, KdfDeleter> kdf(EVP_KDF_fetch(library_context(), name, query));
    const std::unique_ptr<EVP_KDF_CTX, KdfDeleter> context(EVP_KDF_CTX_new(kdf.get()));
    std::string out(size, '\0');
    auto* const target = reinterpret_cast<unsigned char*>(out.data());
    if (EVP_KDF_derive(context.get(), target, size, params.data()) != 1) return std::nullopt;
    return out;
  }
  /// Derives with both providers. The judge comes first.
  static void compare(const char* name, const Params& params, std::size_t size) {
    const auto expected = derive("provider=default", name, params, size);
    ASSERT_TRUE(expected);
    EXPECT_EQ(derive("provider=weir", name, params, size), expected);
  }
  std::optional<std::string> derive_1_3(Given given, std::size_t size = 16) const {
    return derive(query_, OSSL_KDF_NAME_TLS1_3_KDF, params_1_3(given), size);
  }
  std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    for (char& each : bytes) each = static_cast<char>(random_());
    return bytes;
  }

  const char* query_ = nullptr;
  std::minstd_rand random_{static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()) +
                           1U};
};

TEST_F(KeyProviderTest, LabelsExpandAsInOpenssl) {
  for (const auto& [digest, digest_bytes] : {std::pair("SHA256", 32U), std::pair("SHA384", 48U)}) {
    for (const std::size_t key : {1U, 32U, 48U, 64U, 65U, 128U, 129U}) {
      for (const std::size_t size : {1U, 12U, 16U, 32U, 33U, 48U, 49U, 200U}) {
        Given given{.digest = digest, .key = random_bytes(key)};
        given.label = random_bytes(random_() % 13 + 1);
        given.data = random_bytes(random_() % 2 * digest_bytes);
        compare(OSSL_KDF_NAME_TLS1_3_KDF, params_1_3(given), size);
      }
    }
  }
}

TEST_F(KeyProviderTest, SecretsFollowAsInOpenssl) {
  for (const auto& [digest, digest_bytes] : {std::pair("SHA256", 32U), std::pair("SHA384", 48U)}) {
    for (const std::size_t salt : {0U, digest_bytes}) {
      for (const std::size_t key : {0U, 32U, 48U, 66U, 1600U}) {
        Given given{.digest = digest, .mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY, .label = "derived"};
        given.key = random_bytes(key);
        given.salt = random_bytes(salt);
        compare(OSSL_KDF_NAME_TLS1_3_KDF, params_1_3(given), digest_bytes);
      }
    }
  }
}

TEST_F(KeyProviderTest, PseudorandomBytesAreThoseOfOpenssl) {
  for (std::string digest : {"SHA256", "SHA384", "SHA2-256", "SHA2-384"}) {
    for (const std::size_t size : {1U, 12U, 40U, 48U, 100U, 10000U}) {
      std::string secret = random_bytes(random_() % 150 + 1);
      std::string label = "key expansion";
      std::string seed = random_bytes(64);
      std::string none;
      const Params params{
          text(OSSL_KDF_PARAM_DIGEST, digest), octets(OSSL_KDF_PARAM_SECRET, secret),
          octets(OSSL_KDF_PARAM_SEED, label),  octets(OSSL_KDF_PARAM_SEED, seed),
          octets(OSSL_KDF_PARAM_SEED, none),   OSSL_PARAM_construct_end()};
      compare(OSSL_KDF_NAME_TLS1_PRF, params, size);
    }
  }
}

TEST_F(KeyProviderTest, OtherParametersAreRejected) {
  ASSERT_TRUE(derive_1_3({}));
  EXPECT_FALSE(derive_1_3({.digest = "SHA512"}));
  EXPECT_FALSE(derive_1_3({.mode = EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND}));
  EXPECT_FALSE(derive_1_3({.key = ""}));
  EXPECT_FALSE(derive_1_3({.prefix = "dtls13"}));
  EXPECT_TRUE(derive_1_3({.label = std::string(249, 'l')}));
  EXPECT_FALSE(derive_1_3({.label = std::string(250, 'l')}));
  EXPECT_FALSE(derive_1_3({.data = std::string(256, 'd')}));
  EXPECT_TRUE(derive_1_3({}, std::size_t{255} * 32));
  EXPECT_FALSE(derive_1_3({}, std::size_t{255} * 32 + 1));
  const Given extracts{.mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY, .label = "derived"};
  EXPECT_TRUE(derive_1_3(extracts, 32));
  EXPECT_FALSE(derive_1_3(extracts, 31));
  std::string digest = "SHA256";
  const Params no_seed{text(OSSL_KDF_PARAM_DIGEST, digest), OSSL_PARAM_construct_end()};
  EXPECT_FALSE(derive(query_, OSSL_KDF_NAME_TLS1_PRF, no_seed, 12));
  EXPECT_FALSE(derive(query_, OSSL_KDF_NAME_TLS1_PRF, {OSSL_PARAM_construct_end()}, 12));
  std::string more = "x";
  Given given;
  Params unknown = params_1_3(given);
  unknown.insert(unknown.begin(), octets("unknown", more));
  EXPECT_FALSE(derive(query_, OSSL_KDF_NAME_TLS1_3_KDF, unknown, 16));
}

TEST_F(KeyProviderTest, OtherAlgorithmsStayWithOpenssl) {
  const std::unique_ptr<EVP_KDF, KdfDeleter> kdf(EVP_KDF_fetch(library_context(), "HKDF", query_));
  ASSERT_NE(kdf, nullptr);
  EXPECT_EQ(EVP_KDF_fetch(library_context(), "HKDF", "provider=weir"), nullptr);
}

struct MacDeleter {
  void operator()(EVP_MAC* mac) const noexcept { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const noexcept { EVP_MAC_CTX_free(context); }
};

class MacTest : public KeyProviderTest {
 protected:
  using ContextPtr = std::unique_ptr<EVP_MAC_CTX, MacDeleter>;

  static ContextPtr context(const char* query) {
    const std::unique_ptr<EVP_MAC, MacDeleter> mac(EVP_MAC_fetch(library_context(), "HMAC", query));
    return ContextPtr(EVP_MAC_CTX_new(mac.get()));
  }
  static const unsigned char* data_of(const std::string& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
  }
  /// Begins with this key. An empty digest is left out.
  static bool begin(EVP_MAC_CTX* context, std::string digest, const std::string& key) {
    const Params params{
        digest.empty() ? OSSL_PARAM_construct_end() : text(OSSL_MAC_PARAM_DIGEST, digest),
        OSSL_PARAM_construct_end()};
    return EVP_MAC_init(context, data_of(key), key.size(), params.data()) == 1;
  }
  static void add(EVP_MAC_CTX* context, const std::string& message) {
    EXPECT_EQ(EVP_MAC_update(context, data_of(message), message.size()), 1);
  }
  static std::string end(EVP_MAC_CTX* context) {
    std::string out(EVP_MAX_MD_SIZE, '\0');
    std::size_t size = 0;
    auto* const target = reinterpret_cast<unsigned char*>(out.data());
    EXPECT_EQ(EVP_MAC_final(context, target, &size, out.size()), 1);
    EXPECT_EQ(size, EVP_MAC_CTX_get_mac_size(context));
    out.resize(size);
    return out;
  }
};

TEST_F(MacTest, AgreesWithOpenssl) {
  for (const char* const digest : {"SHA256", "SHA384"}) {
    for (const std::size_t size : {1U, 32U, 48U, 64U, 65U, 128U, 129U}) {
      const std::string key = random_bytes(size);
      const std::string first = random_bytes(random_() % 300);
      const std::string second = random_bytes(random_() % 300);
      std::vector<std::string> macs;
      for (const char* const query : {"provider=default", query_}) {
        const ContextPtr mac = context(query);
        ASSERT_TRUE(begin(mac.get(), digest, key));
        add(mac.get(), first);
        const ContextPtr copy(EVP_MAC_CTX_dup(mac.get()));
        ASSERT_NE(copy, nullptr);
        add(mac.get(), second);
        macs.push_back(end(mac.get()) + end(copy.get()));
        // Another message with the same key.
        ASSERT_EQ(EVP_MAC_init(mac.get(), nullptr, 0, nullptr), 1);
        add(mac.get(), second);
        macs.back() += end(mac.get());
      }
      EXPECT_EQ(macs[0], macs[1]);
      EXPECT_EQ(macs[0].size(), 3 * EVP_MD_get_size(EVP_get_digestbyname(digest)));
    }
  }
}

TEST_F(MacTest, KeyMayBeAParameter) {
  std::string digest = "SHA256";
  std::string key = random_bytes(32);
  const Params params{octets(OSSL_MAC_PARAM_KEY, key), text(OSSL_MAC_PARAM_DIGEST, digest),
                      OSSL_PARAM_construct_end()};
  std::vector<std::string> macs;
  for (const char* const query : {"provider=default", query_}) {
    const ContextPtr mac = context(query);
    ASSERT_EQ(EVP_MAC_CTX_set_params(mac.get(), params.data()), 1);
    ASSERT_EQ(EVP_MAC_init(mac.get(), nullptr, 0, nullptr), 1);
    add(mac.get(), "message");
    macs.push_back(end(mac.get()));
  }
  EXPECT_EQ(macs[0], macs[1]);
}

TEST_F(MacTest, NeedsAHashAKeyAndRoom) {
  const ContextPtr mac = context(query_);
  EXPECT_FALSE(begin(mac.get(), "", "key"));
  EXPECT_FALSE(begin(mac.get(), "SHA512", "key"));
  EXPECT_NE(EVP_MAC_update(mac.get(), data_of("x"), 1), 1);
  EXPECT_NE(EVP_MAC_init(mac.get(), nullptr, 0, nullptr), 1);
  ASSERT_TRUE(begin(mac.get(), "SHA256", "key"));
  std::array<unsigned char, 31> small{};
  std::size_t size = 0;
  EXPECT_NE(EVP_MAC_final(mac.get(), small.data(), &size, small.size()), 1);
}

/// Returns true if the newest receiver keeps the secret with this label.
bool keeps(const std::string& label) {
  const auto bytes_of = [](const HandshakeKeys& keys) {
    return std::string(reinterpret_cast<const char*>(&keys), sizeof keys);
  };
  HandshakeKeys keys;
  HandshakeKeys inner_keys;
  const std::string before = bytes_of(keys);
  const std::string inner_before = bytes_of(inner_keys);
  std::string out(32, '\0');
  class Derive : public KeyProviderTest {
   public:
    void TestBody() override {}
    using KeyProviderTest::derive_1_3;
  } kdf;
  const TrafficSecretReceiver receiver(keys);
  {
    const TrafficSecretReceiver inner(inner_keys);
  }
  EXPECT_TRUE(kdf.derive_1_3({.label = label}, 32));
  EXPECT_EQ(bytes_of(inner_keys), inner_before);
  return bytes_of(keys) != before;
}

TEST_F(KeyProviderTest, ReceiverGetsTrafficSecretsOnly) {
  EXPECT_TRUE(keeps("c ap traffic"));
  EXPECT_TRUE(keeps("s ap traffic"));
  for (const char* const label : {"c hs traffic", "s hs traffic", "exp master", "res master", "key",
                                  "iv", "finished", "traffic upd", "ap traffic", "c ap traffic2"}) {
    EXPECT_FALSE(keeps(label)) << label;
  }
}

TEST_F(KeyProviderTest, TrialShowsWhetherHandshakesSucceed) {
  EXPECT_STREQ(query_, "?provider=weir");
  EXPECT_TRUE(performs_handshakes("?provider=weir"));
  EXPECT_TRUE(performs_handshakes("provider=default"));
  EXPECT_FALSE(performs_handshakes("provider=weir")) << "it has no ciphers";
}

TEST(KeyProviderProcessTest, OtherUsersKeepTheHmacOfOpenSsl) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not used OpenSSL
  const auto code = [] {
    const bool loaded = use_key_provider() != nullptr;
    std::array<unsigned char, 64> target{};
    unsigned size = 0;
    const unsigned char* const made =
        HMAC(EVP_sha512(), "key", 3, target.data(), 1, target.data(), &size);
    return loaded && made != nullptr && size == target.size() ? 0 : 1;
  };
  EXPECT_EXIT(std::_Exit(code()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::tls::detail::key_provider_test
