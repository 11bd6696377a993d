// Tests what is kept of the secrets that OpenSSL derives. aead_records_test.cpp tests their use.
#include "weir/tls/detail/records/handshake_keys.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/detail/records/aead_records.hpp"
#include "weir/tls/test/engine_fixture.hpp"
#include "weir/tls/test/record_forge.hpp"

namespace weir::tls::detail::handshake_keys_test {
namespace {

using HandshakeKeysTest = EngineTest;

TEST_F(HandshakeKeysTest, SecretOfAnotherSizeGivesNoKeys) {
  static const SSL* ssl = nullptr;
  make_contexts();
  SSL_CTX_set_info_callback(&contexts_->first(), [](const SSL* each, int, int) { ssl = each; });
  make_engines();
  shake();
  ASSERT_TRUE(connected());
  const std::string bytes(64, '7');
  const auto secret = [&bytes](std::size_t size) { return to_bytes(bytes).first(size); };
  HandshakeKeys keys;
  EXPECT_FALSE(keys.keys_of(*ssl)) << "no secret";
  keys.take_client_secret(secret(32));
  EXPECT_FALSE(keys.keys_of(*ssl)) << "no secret of the server";
  keys.take_server_secret(secret(32));
  const auto made = keys.keys_of(*ssl);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->read.secret[31], '7');
  EXPECT_EQ(made->write.secret[31], '7');
  for (const std::size_t size : {0U, 1U, 31U, 33U, 48U, 49U, 64U}) {
    keys.take_server_secret(secret(size));
    EXPECT_FALSE(keys.keys_of(*ssl)) << size;
    keys.take_server_secret(secret(32));
    keys.take_client_secret(secret(size));
    EXPECT_FALSE(keys.keys_of(*ssl)) << size;
    keys.take_client_secret(secret(32));
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

/// A client of TLS 1.2 that sends its Finished in records of any size.
class SplitFinishedTest : public HandshakeKeysTest {
 protected:
  /// Performs the handshake. The Finished of the client is in records with `sizes` bytes.
  /// Returns: the keys of the server, or nullopt if it has not finished.
  std::optional<ConnectionKeys> shake_with(std::initializer_list<std::size_t> sizes) {
    make();
    const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
    const SslPtr ssl(SSL_new(context.get()));
    BIO* const input = BIO_new(BIO_s_mem());
    BIO* const output = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), input, output);
    SSL_set_connect_state(ssl.get());
    SSL_do_handshake(ssl.get());
    std::string flight;
    feed(*server_, take(*output), flight);
    BIO_write(input, flight.data(), static_cast<int>(flight.size()));
    SSL_do_handshake(ssl.get());
    std::string bytes = take(*output);
    // ClientKeyExchange, change_cipher_spec, and the sealed Finished, which is made again.
    const std::size_t finished = 5 + 8 + 16 + AeadCore::tag_bytes;
    EXPECT_GT(bytes.size(), finished);
    bytes.resize(bytes.size() - finished);
    std::string message("\x14\0\0\x0c", 4);
    message.resize(16);
    EXPECT_EQ(SSL_get_finished(ssl.get(), message.data() + 4, 12), 12U);
    forge_.emplace(keys_of(*ssl));
    std::string_view rest = message;
    for (const std::size_t size : sizes) {
      bytes += forge_->seal(record_type::handshake, rest.substr(0, size));
      rest.remove_prefix(size);
    }
    EXPECT_TRUE(rest.empty());
    std::string answer;
    return feed(*server_, bytes, answer) == Step::finished ? server_->keys() : std::nullopt;
  }

  std::optional<RecordForge> forge_;

 private:
  static std::string take(BIO& output) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(&output, &data);
    std::string bytes(data, static_cast<std::size_t>(size));
    BIO_reset(&output);
    return bytes;
  }
  /// Derives the keys as the client does.
  static ConnectionKeys keys_of(const SSL& ssl) {
    ConnectionKeys keys;
    keys.version = TlsVersion::tls_1_2;
    std::array<std::byte, SSL_MAX_MASTER_KEY_LENGTH> master{};
    std::array<std::byte, std::size_t{2} * SSL3_RANDOM_SIZE> randoms{};
    const std::size_t size = SSL_SESSION_get_master_key(
        SSL_get_session(&ssl), reinterpret_cast<unsigned char*>(master.data()), master.size());
    auto* const random = reinterpret_cast<unsigned char*>(randoms.data());
    SSL_get_server_random(&ssl, random, SSL3_RANDOM_SIZE);
    SSL_get_client_random(&ssl, random + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE);
    derive_key_block(keys.read, keys.write, keys.suite, std::span(master).first(size), randoms);
    return keys;
  }
};

TEST_F(SplitFinishedTest, ItsRecordsAreCounted) {
  const std::initializer_list<std::size_t> splits[] = {{16}, {10, 6}, {1, 3, 12}, {4, 4, 4, 4}};
  for (const auto& sizes : splits) {
    const auto keys = shake_with(sizes);
    ASSERT_TRUE(keys) << sizes.size();
    EXPECT_EQ(keys->read.sequence, sizes.size());
    AeadCore core(nullptr);
    AeadRecords records(core, *keys);
    Buffer input = buffer_of(forge_->data("hello"));
    Buffer plain;
    Buffer output;
    EXPECT_EQ(records.open(input, plain, output), Opened::data) << sizes.size();
    EXPECT_EQ(plain.text(), "hello");
  }
}

}  // namespace
}  // namespace weir::tls::detail::handshake_keys_test
