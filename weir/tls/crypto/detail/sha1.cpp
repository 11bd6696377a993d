// SHA1_Init() and the like are deprecated in favour of EVP, whose contexts are allocated.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "weir/tls/crypto/detail/sha1.hpp"

#include <openssl/sha.h>

namespace weir::tls::detail {

std::array<std::byte, 20> sha1(Bytes bytes) noexcept {
  static_assert(SHA_DIGEST_LENGTH == 20);
  std::array<std::byte, 20> digest;
  // SHA1() would find the hash by its name, which can fail.
  SHA_CTX context;
  SHA1_Init(&context);
  SHA1_Update(&context, bytes.data(), bytes.size());
  SHA1_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

}  // namespace weir::tls::detail
