// The hashes of OpenSSL for hmac.hpp. SHA256_Init() and the like are deprecated in favour of EVP,
// whose contexts are allocated.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cassert>
#include <new>

#include "weir/tls/crypto/detail/hmac.hpp"

namespace weir::tls::detail {
namespace {

/// Returns the context in a state. Both kinds are trivial.
template <class Context, class State>
Context* context_in(State& state) noexcept {
  static_assert(sizeof(Context) <= sizeof(State) && alignof(Context) <= alignof(State));
  return std::launder(reinterpret_cast<Context*>(state.words.data()));
}

/// Begins SHA-384 or SHA-512, which differ only in their start and their length.
void init_long(Hash hash, SHA512_CTX* context) noexcept {
  hash == Hash::sha_384 ? SHA384_Init(context) : SHA512_Init(context);
}

}  // namespace

void digest(Hash hash, Bytes bytes, std::span<std::uint8_t> target) noexcept {
  assert(target.size() == digest_bytes_of(hash));
  // SHA256() and the like would find the hash by its name, which can fail.
  if (hash == Hash::sha_256) {
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes.data(), bytes.size());
    SHA256_Final(target.data(), &context);
    OPENSSL_cleanse(&context, sizeof context);
  } else {
    SHA512_CTX context;
    init_long(hash, &context);
    SHA512_Update(&context, bytes.data(), bytes.size());
    SHA512_Final(target.data(), &context);  // it knows the length
    OPENSSL_cleanse(&context, sizeof context);
  }
}

void Hmac::init(State& state) const noexcept {
  state.words.fill(0);
  if (hash_ == Hash::sha_256) {
    SHA256_Init(::new (state.words.data()) SHA256_CTX);
  } else {
    init_long(hash_, ::new (state.words.data()) SHA512_CTX);
  }
}

void Hmac::add(State& state, const void* data, std::size_t size) const noexcept {
  hash_ == Hash::sha_256 ? SHA256_Update(context_in<SHA256_CTX>(state), data, size)
                         : SHA512_Update(context_in<SHA512_CTX>(state), data, size);
}

void Hmac::end(State& state, std::uint8_t* target) const noexcept {
  hash_ == Hash::sha_256 ? SHA256_Final(target, context_in<SHA256_CTX>(state))
                         : SHA512_Final(target, context_in<SHA512_CTX>(state));
}

}  // namespace weir::tls::detail
