#include "weir/tls/detail/records/aead_core.hpp"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/octets.hpp"

namespace weir::tls::detail {
namespace {

/// Returns the cipher of a suite; nullptr if OpenSSL has none.
const EVP_CIPHER* cipher_of(Suite suite) {
  const auto fetch = [](const char* name) {
    return EVP_CIPHER_fetch(library_context(), name, nullptr);
  };
  static const std::array<const EVP_CIPHER*, 3> ciphers{fetch("AES-128-GCM"), fetch("AES-256-GCM"),
                                                        fetch("ChaCha20-Poly1305")};
  switch (suite) {
    case Suite::aes_128_gcm:
      return ciphers[0];
    case Suite::aes_256_gcm:
      return ciphers[1];
    case Suite::chacha20_poly1305:
      break;
  }
  return ciphers[2];
}

}  // namespace

AeadCore::~AeadCore() {
  // OpenSSL erases a context before it frees it.
  for (const Context& each : opening_) EVP_CIPHER_CTX_free(each.cipher);
  for (const Context& each : sealing_) EVP_CIPHER_CTX_free(each.cipher);
}

/// Returns the context with the key and the nonce, or nullptr.
evp_cipher_ctx_st* AeadCore::prepare(bool seals, Suite suite, const TrafficKey& key,
                                     const Nonce& nonce) noexcept {
  Context& context = (seals ? sealing_ : opening_)[static_cast<std::size_t>(suite)];
  const int direction = seals ? 1 : 0;
  if (context.cipher == nullptr) {
    context.cipher = EVP_CIPHER_CTX_new();
    if (context.cipher == nullptr) return nullptr;
    const EVP_CIPHER* const cipher = cipher_of(suite);
    if (cipher == nullptr ||
        EVP_CipherInit_ex(context.cipher, cipher, nullptr, nullptr, nullptr, direction) != 1) {
      EVP_CIPHER_CTX_free(context.cipher);
      context.cipher = nullptr;
      return nullptr;
    }
  }
  const bool known = context.holder == &key;
  context.holder = nullptr;
  if (EVP_CipherInit_ex(context.cipher, nullptr, nullptr, known ? nullptr : key.key.data(),
                        nonce.data(), direction) != 1) {
    EVP_CIPHER_CTX_free(context.cipher);  // it may have a key
    context.cipher = nullptr;
    return nullptr;
  }
  context.holder = &key;
  return context.cipher;
}

bool AeadCore::seal(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
                    std::span<const Bytes> parts, std::byte* target) noexcept {
  if (uses_gcm(suite)) {
    gcm_->seal(suite, key, nonce, associated, parts, target);
    return true;
  }
  EVP_CIPHER_CTX* const cipher = prepare(true, suite, key, nonce);
  int size = 0;
  if (cipher == nullptr || EVP_EncryptUpdate(cipher, nullptr, &size, data_of(associated),
                                             static_cast<int>(associated.size())) != 1) {
    return false;
  }
  // Both AEADs are stream ciphers: each update writes as many bytes as it takes.
  for (const Bytes part : parts) {
    if (part.empty()) continue;
    if (EVP_EncryptUpdate(cipher, data_of(target), &size, data_of(part),
                          static_cast<int>(part.size())) != 1) {
      return false;
    }
    target += part.size();
  }
  return EVP_EncryptFinal_ex(cipher, data_of(target), &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, tag_bytes, target) == 1;
}

bool AeadCore::open(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
                    MutableBytes sealed) noexcept {
  if (sealed.size() < tag_bytes) return false;
  if (uses_gcm(suite)) return gcm_->open(suite, key, nonce, associated, sealed);
  EVP_CIPHER_CTX* const cipher = prepare(false, suite, key, nonce);
  if (cipher == nullptr) return false;
  const MutableBytes data = sealed.first(sealed.size() - tag_bytes);
  std::byte* const tag = sealed.data() + data.size();
  int size = 0;
  const bool begun = EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) == 1 &&
                     EVP_DecryptUpdate(cipher, nullptr, &size, data_of(associated),
                                       static_cast<int>(associated.size())) == 1;
  if (!begun) return false;
  if (!data.empty() && EVP_DecryptUpdate(cipher, data_of(data.data()), &size, data_of(data),
                                         static_cast<int>(data.size())) != 1) {
    return false;
  }
  return EVP_DecryptFinal_ex(cipher, data_of(tag), &size) == 1;
}

void AeadCore::forget(const TrafficKey& key) noexcept {
  if (gcm_ != nullptr) gcm_->forget(key);
  static constexpr std::array<unsigned char, 32> zero{};
  const auto erase = [&key](Context& context, int seals) {
    if (context.holder != &key) return;
    context.holder = nullptr;
    if (EVP_CipherInit_ex(context.cipher, nullptr, nullptr, zero.data(), zero.data(), seals) == 1) {
      return;
    }
    EVP_CIPHER_CTX_free(context.cipher);
    context.cipher = nullptr;
  };
  for (Context& each : opening_) erase(each, 0);
  for (Context& each : sealing_) erase(each, 1);
}

}  // namespace weir::tls::detail
