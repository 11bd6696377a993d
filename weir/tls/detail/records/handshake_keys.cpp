#include "weir/tls/detail/records/handshake_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "weir/tls/crypto/detail/library_context.hpp"

namespace weir::tls::detail {
namespace {

/// Returns the suite with the AEAD and the hash of `cipher`.
std::optional<Suite> suite_of(const SSL_CIPHER& cipher) {
  const EVP_MD* const hash = SSL_CIPHER_get_handshake_digest(&cipher);
  const int hash_id = hash == nullptr ? NID_undef : EVP_MD_get_type(hash);
  switch (SSL_CIPHER_get_cipher_nid(&cipher)) {
    case NID_aes_128_gcm:
      if (hash_id == NID_sha256) return Suite::aes_128_gcm;
      break;
    case NID_aes_256_gcm:
      if (hash_id == NID_sha384) return Suite::aes_256_gcm;
      break;
    case NID_chacha20_poly1305:
      if (hash_id == NID_sha256) return Suite::chacha20_poly1305;
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

/// Returns the number of bytes of `secret`, or 0 if it is too long.
std::size_t HandshakeKeys::keep(Bytes secret, TrafficKey& key) noexcept {
  if (secret.size() > key.secret.size()) return 0;
  std::memcpy(key.secret.data(), secret.data(), secret.size());
  return secret.size();
}

void HandshakeKeys::take_output(Bytes output) noexcept {
  // A header, the nonce, the header of the message, 12 bytes of verify data, and the tag.
  constexpr std::array<std::uint8_t, 5> header{22, 3, 3, 0, 8 + 4 + 12 + 16};
  constexpr std::size_t size = header.size() + header.back();
  finished_nonce_.reset();
  if (output.size() < size) return;
  const std::byte* const record = output.last(size).data();
  if (std::memcmp(record, header.data(), header.size()) != 0) return;
  finished_nonce_.emplace();
  std::memcpy(finished_nonce_->data(), record + header.size(), finished_nonce_->size());
}

std::optional<ConnectionKeys> HandshakeKeys::keys_of(const ssl_st& ssl) const {
  const SSL_SESSION* const session = SSL_get_session(&ssl);
  const SSL_CIPHER* const cipher = SSL_get_current_cipher(&ssl);
  if (session == nullptr || cipher == nullptr || SSL_has_pending(&ssl) != 0) return std::nullopt;
  // The records of a program that demands FIPS stay with OpenSSL.
  if (library_context() == nullptr) return std::nullopt;
  const std::optional<Suite> suite = suite_of(*cipher);
  if (!suite) return std::nullopt;
  ConnectionKeys keys;
  keys.suite = *suite;
  keys.fragments = SSL_SESSION_get_max_fragment_length(session);
  keys.version = SSL_version(&ssl) == TLS1_3_VERSION ? TlsVersion::tls_1_3 : TlsVersion::tls_1_2;
  const bool added = keys.version == TlsVersion::tls_1_3 ? add_1_3(keys) : add_1_2(keys, ssl);
  return added ? std::optional(keys) : std::nullopt;
}

bool HandshakeKeys::add_1_3(ConnectionKeys& keys) const {
  const std::size_t size = secret_bytes_of(keys.suite);
  if (client_bytes_ != size || server_bytes_ != size) return false;
  keys.read.secret = client_.secret;
  keys.write.secret = server_.secret;
  derive_key(keys.read, keys.suite);
  derive_key(keys.write, keys.suite);
  keys.write.sequence = records_;
  return true;
}

bool HandshakeKeys::add_1_2(ConnectionKeys& keys, const ssl_st& ssl) const {
  std::array<std::byte, SSL_MAX_MASTER_KEY_LENGTH> master{};
  std::array<std::byte, std::size_t{2} * SSL3_RANDOM_SIZE> randoms{};
  const std::size_t size = SSL_SESSION_get_master_key(
      SSL_get_session(&ssl), reinterpret_cast<unsigned char*>(master.data()), master.size());
  auto* const random = reinterpret_cast<unsigned char*>(randoms.data());
  SSL_get_server_random(&ssl, random, SSL3_RANDOM_SIZE);
  SSL_get_client_random(&ssl, random + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE);
  derive_key_block(keys.read, keys.write, keys.suite, std::span(master).first(size), randoms);
  OPENSSL_cleanse(master.data(), master.size());
  keys.read.sequence = received_;
  keys.write.sequence = 1;  // of the server's Finished
  if (keys.suite == Suite::chacha20_poly1305) return true;
  if (!finished_nonce_) return false;
  std::ranges::copy(*finished_nonce_, keys.write.iv.begin() + 4);
  return true;
}

}  // namespace weir::tls::detail
