#include "weir/tls/crypto/detail/aes_gcm.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <cassert>
#include <climits>
#include <cstring>
#include <memory>

#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/octets.hpp"
#include "weir/tls/crypto/detail/random.hpp"

namespace weir::tls::detail {
namespace {

struct ContextDeleter {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<EVP_CIPHER_CTX, ContextDeleter>;

/// Encrypts or decrypts `input` to `output`, which may be the same bytes. An empty span of OpenSSL
/// with a null pointer would have another meaning.
bool update(EVP_CIPHER_CTX* cipher, Bytes associated, Bytes input, std::byte* output) {
  int size = 0;
  if (!associated.empty() && EVP_CipherUpdate(cipher, nullptr, &size, data_of(associated),
                                              static_cast<int>(associated.size())) != 1) {
    return false;
  }
  return input.empty() || EVP_CipherUpdate(cipher, data_of(output), &size, data_of(input),
                                           static_cast<int>(input.size())) == 1;
}

/// Returns the cipher. EVP_aes_256_gcm() would be looked up by name in the default context.
const EVP_CIPHER* aes_256_gcm() noexcept {
  static const EVP_CIPHER* const cipher =
      EVP_CIPHER_fetch(library_context(), "AES-256-GCM", nullptr);
  return cipher;
}

}  // namespace

AesGcmKey::AesGcmKey(Bytes key) noexcept {
  assert(key.size() == key_.size());
  std::memcpy(key_.data(), key.data(), key_.size());
}

bool AesGcmKey::seal(Bytes associated, Bytes plain, std::byte* target) const noexcept {
  if (plain.size() > INT_MAX || associated.size() > INT_MAX) return false;
  std::byte* const data = target + nonce_bytes;
  std::byte* const tag = data + plain.size();
  const ContextPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  const bool sealed =
      cipher != nullptr && fill_random({target, nonce_bytes}) &&
      EVP_EncryptInit_ex(cipher.get(), aes_256_gcm(), nullptr, key_.data(), data_of(target)) == 1 &&
      update(cipher.get(), associated, plain, data) &&
      EVP_EncryptFinal_ex(cipher.get(), data_of(tag), &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, tag_bytes, tag) == 1;
  if (!sealed) ERR_clear_error();
  return sealed;
}

std::optional<MutableBytes> AesGcmKey::open(Bytes associated, MutableBytes sealed) const noexcept {
  if (sealed.size() < overhead || sealed.size() > INT_MAX || associated.size() > INT_MAX) {
    return std::nullopt;
  }
  const MutableBytes data = sealed.subspan(nonce_bytes, sealed.size() - overhead);
  std::byte* const tag = data.data() + data.size();
  const ContextPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  const bool opened =
      cipher != nullptr &&
      EVP_DecryptInit_ex(cipher.get(), aes_256_gcm(), nullptr, key_.data(),
                         data_of(Bytes(sealed))) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) == 1 &&
      update(cipher.get(), associated, data, data.data()) &&
      EVP_DecryptFinal_ex(cipher.get(), data_of(tag), &size) == 1;
  if (opened) return data;
  ERR_clear_error();
  return std::nullopt;
}

}  // namespace weir::tls::detail
