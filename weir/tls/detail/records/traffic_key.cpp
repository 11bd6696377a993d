#include "weir/tls/detail/records/traffic_key.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cassert>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace weir::tls::detail {

TrafficKey::~TrafficKey() {
  OPENSSL_cleanse(secret.data(), secret.size());
  OPENSSL_cleanse(key.data(), key.size());
  OPENSSL_cleanse(iv.data(), iv.size());
}

namespace {

struct KdfDeleter {
  void operator()(EVP_KDF* kdf) const noexcept { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const noexcept { EVP_KDF_CTX_free(context); }
};

OSSL_PARAM octets(const char* name, Bytes bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                           bytes.size());
}

OSSL_PARAM digest_of(Suite suite) {
  static char sha256[] = "SHA256";
  static char sha384[] = "SHA384";
  return OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
                                          suite == Suite::aes_256_gcm ? sha384 : sha256, 0);
}

bool derive(const char* function, const OSSL_PARAM* parameters, std::span<std::uint8_t> target) {
  const std::unique_ptr<EVP_KDF, KdfDeleter> kdf(EVP_KDF_fetch(nullptr, function, nullptr));
  if (kdf == nullptr) return false;
  const std::unique_ptr<EVP_KDF_CTX, KdfDeleter> context(EVP_KDF_CTX_new(kdf.get()));
  return context != nullptr &&
         EVP_KDF_derive(context.get(), target.data(), target.size(), parameters) == 1;
}

/// HKDF-Expand-Label with an empty context. RFC 8446, 7.1.
bool expand_label(Suite suite, Bytes secret, std::string_view label,
                  std::span<std::uint8_t> target) {
  constexpr std::string_view prefix = "tls13 ";
  std::array<std::uint8_t, 32> info{};
  assert(4 + prefix.size() + label.size() <= info.size());
  std::size_t size = 0;
  info[size++] = 0;  // uint16 length
  info[size++] = static_cast<std::uint8_t>(target.size());
  info[size++] = static_cast<std::uint8_t>(prefix.size() + label.size());
  for (const std::string_view part : {prefix, label}) {
    std::memcpy(info.data() + size, part.data(), part.size());
    size += part.size();
  }
  info[size++] = 0;  // length of the context
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  const std::array<OSSL_PARAM, 5> parameters{
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode), digest_of(suite),
      octets(OSSL_KDF_PARAM_KEY, secret),
      octets(OSSL_KDF_PARAM_INFO, std::as_bytes(std::span(info).first(size))),
      OSSL_PARAM_construct_end()};
  return derive(OSSL_KDF_NAME_HKDF, parameters.data(), target);
}

Bytes secret_of(const TrafficKey& key, Suite suite) {
  return std::as_bytes(std::span(key.secret).first(secret_bytes_of(suite)));
}

}  // namespace

bool derive_key(TrafficKey& key, Suite suite) {
  key.sequence = 0;
  return expand_label(suite, secret_of(key, suite), "key",
                      std::span(key.key).first(key_bytes_of(suite))) &&
         expand_label(suite, secret_of(key, suite), "iv", key.iv);
}

bool update_key(TrafficKey& key, Suite suite) {
  TrafficKey next;
  if (!expand_label(suite, secret_of(key, suite), "traffic upd",
                    std::span(next.secret).first(secret_bytes_of(suite)))) {
    return false;
  }
  if (!derive_key(next, suite)) return false;
  key = next;
  return true;
}

bool derive_key_block(TrafficKey& client, TrafficKey& server, Suite suite, Bytes master_secret,
                      Bytes randoms) {
  const std::size_t key_bytes = key_bytes_of(suite);
  // RFC 5288, 3: AES-GCM has a salt of 4 bytes. RFC 7905, 2: the other suite has a whole IV.
  const std::size_t iv_bytes = suite == Suite::chacha20_poly1305 ? 12 : 4;
  std::array<std::uint8_t, 2 * (32 + 12)> block{};
  const std::array<OSSL_PARAM, 5> parameters{
      digest_of(suite), octets(OSSL_KDF_PARAM_SECRET, master_secret),
      octets(OSSL_KDF_PARAM_SEED, to_bytes("key expansion")), octets(OSSL_KDF_PARAM_SEED, randoms),
      OSSL_PARAM_construct_end()};
  const bool derived = derive(OSSL_KDF_NAME_TLS1_PRF, parameters.data(),
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
  return derived;
}

}  // namespace weir::tls::detail
