// Tests what is kept of the secrets that OpenSSL tells. aead_records_test.cpp tests their use.
#include "weir/tls/detail/records/handshake_keys.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstring>
#include <string>
#include <string_view>

#include "weir/tls/test/engine_fixture.hpp"

namespace weir::tls::detail {
namespace {

class HandshakeKeysTest : public EngineTest {
 protected:
  static std::string_view bytes_of(const HandshakeKeys& keys) {
    return {reinterpret_cast<const char*>(&keys), sizeof keys};
  }
  /// Returns true if the object has changed after the line.
  static bool keeps(std::string_view line) {
    HandshakeKeys keys;
    const std::string before(bytes_of(keys));
    keys.take_line(line);
    return bytes_of(keys) != before;
  }
  static std::string line(const std::string& label, const std::string& secret) {
    return label + " " + std::string(64, 'a') + " " + secret;
  }
};

TEST_F(HandshakeKeysTest, KeepsTrafficSecretsOnly) {
  const std::string secret(64, '7');
  EXPECT_TRUE(keeps(line("CLIENT_TRAFFIC_SECRET_0", secret)));
  EXPECT_TRUE(keeps(line("SERVER_TRAFFIC_SECRET_0", secret)));
  for (const std::string label :
       {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "EXPORTER_SECRET",
        "CLIENT_RANDOM", "CLIENT_TRAFFIC_SECRET_N", "CLIENT_TRAFFIC_SECRET_01", "RSA"}) {
    EXPECT_FALSE(keeps(line(label, secret))) << label;
  }
}

TEST_F(HandshakeKeysTest, KeepsNoText) {
  HandshakeKeys keys;
  keys.take_line(line("CLIENT_TRAFFIC_SECRET_0", std::string(64, '7')));
  EXPECT_EQ(bytes_of(keys).find("777777"), std::string_view::npos);
  EXPECT_NE(bytes_of(keys).find("wwww"), std::string_view::npos) << "0x77 is w";
}

TEST_F(HandshakeKeysTest, MalformedSecretGivesNoKeys) {
  make();
  shake();
  ASSERT_TRUE(connected());
  ASSERT_TRUE(server_->keys());
  for (const std::string& secret :
       {std::string(), std::string("7"), std::string("7x"), std::string(98, '7')}) {
    server_->take_secret(line("SERVER_TRAFFIC_SECRET_0", secret));
    EXPECT_FALSE(server_->keys()) << secret;
  }
}

TEST_F(HandshakeKeysTest, UnfinishedHandshakeGivesNoKeys) {
  make();
  std::string hello;
  feed(*client_, "", hello);
  EXPECT_FALSE(server_->keys());
  std::string flight;
  feed(*server_, hello, flight);
  EXPECT_FALSE(server_->keys());
}

}  // namespace
}  // namespace weir::tls::detail
