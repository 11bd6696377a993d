#include "weir/tls/detail/records/traffic_key.hpp"

#include <openssl/crypto.h>

#include <cstring>
#include <span>

#include "weir/tls/detail/records/key_schedule.hpp"

namespace weir::tls::detail {

TrafficKey::~TrafficKey() {
  OPENSSL_cleanse(secret.data(), secret.size());
  OPENSSL_cleanse(key.data(), key.size());
  OPENSSL_cleanse(iv.data(), iv.size());
}

namespace {

Hash hash_of(Suite suite) noexcept {
  return suite == Suite::aes_256_gcm ? Hash::sha_384 : Hash::sha_256;
}

Bytes secret_of(const TrafficKey& key, Suite suite) noexcept {
  return std::as_bytes(std::span(key.secret).first(secret_bytes_of(suite)));
}

}  // namespace

void derive_key(TrafficKey& key, Suite suite) noexcept {
  const Hash hash = hash_of(suite);
  key.sequence = 0;
  expand_label(hash, secret_of(key, suite), "key", {},
               std::span(key.key).first(key_bytes_of(suite)));
  expand_label(hash, secret_of(key, suite), "iv", {}, key.iv);
}

void update_key(TrafficKey& key, Suite suite) noexcept {
  TrafficKey next;
  expand_label(hash_of(suite), secret_of(key, suite), "traffic upd", {},
               std::span(next.secret).first(secret_bytes_of(suite)));
  derive_key(next, suite);
  key = next;
}

void derive_key_block(TrafficKey& client, TrafficKey& server, Suite suite, Bytes master_secret,
                      Bytes randoms) noexcept {
  const std::size_t key_bytes = key_bytes_of(suite);
  // RFC 5288, 3: AES-GCM has a salt of 4 bytes. RFC 7905, 2: the other suite has a whole IV.
  const std::size_t iv_bytes = suite == Suite::chacha20_poly1305 ? 12 : 4;
  std::array<std::uint8_t, 2 * (32 + 12)> block{};
  const std::array seeds{to_bytes("key expansion"), randoms};
  pseudorandom(hash_of(suite), master_secret, seeds,
               std::span(block).first(2 * (key_bytes + iv_bytes)));
  const std::uint8_t* next = block.data();
  const auto take = [&next](std::uint8_t* target, std::size_t count) {
    std::memcpy(target, next, count);
    next += count;
  };
  take(client.key.data(), key_bytes);
  take(server.key.data(), key_bytes);
  take(client.iv.data(), iv_bytes);
  take(server.iv.data(), iv_bytes);
  OPENSSL_cleanse(block.data(), block.size());
}

}  // namespace weir::tls::detail
