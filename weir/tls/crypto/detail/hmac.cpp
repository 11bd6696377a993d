// SHA256_Init() and the like are deprecated in favour of EVP, whose contexts are allocated.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "weir/tls/crypto/detail/hmac.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cassert>
#include <cstring>
#include <new>

namespace weir::tls::detail {
namespace {

constexpr std::uint8_t inner_pad = 0x36;
constexpr std::uint8_t outer_pad = 0x5c;

constexpr std::size_t block_bytes_of(Hash hash) noexcept {
  return hash == Hash::sha_256 ? SHA256_CBLOCK : SHA512_CBLOCK;
}

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

template <std::size_t Size>
Secret<Size>::~Secret() {
  OPENSSL_cleanse(this->data(), Size);
}
template struct Secret<32>;
template struct Secret<48>;
template struct Secret<128>;

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

Hmac::Hmac(Hash hash, Bytes key) noexcept : hash_(hash) {
  Secret<128> pad;
  if (key.size() > block_bytes_of(hash)) {
    digest(hash, key, std::span(pad).first(digest_bytes_of(hash)));
  } else if (!key.empty()) {
    std::memcpy(pad.data(), key.data(), key.size());
  }
  for (std::uint8_t& each : pad) each ^= inner_pad;
  begin(inner_, pad);
  for (std::uint8_t& each : pad) each ^= inner_pad ^ outer_pad;
  begin(outer_, pad);
  message_ = inner_;
}

Hmac::~Hmac() {
  OPENSSL_cleanse(&inner_, sizeof inner_);
  OPENSSL_cleanse(&outer_, sizeof outer_);
  OPENSSL_cleanse(&message_, sizeof message_);
}

void Hmac::begin(State& state, const Secret<128>& pad) const noexcept {
  state.words.fill(0);
  if (hash_ == Hash::sha_256) {
    SHA256_Init(::new (state.words.data()) SHA256_CTX);
  } else {
    init_long(hash_, ::new (state.words.data()) SHA512_CTX);
  }
  add(state, pad.data(), block_bytes_of(hash_));
}

void Hmac::add(State& state, const void* data, std::size_t size) const noexcept {
  hash_ == Hash::sha_256 ? SHA256_Update(context_in<SHA256_CTX>(state), data, size)
                         : SHA512_Update(context_in<SHA512_CTX>(state), data, size);
}

void Hmac::end(State& state, std::uint8_t* target) const noexcept {
  hash_ == Hash::sha_256 ? SHA256_Final(target, context_in<SHA256_CTX>(state))
                         : SHA512_Final(target, context_in<SHA512_CTX>(state));
}

void Hmac::update(Bytes bytes) noexcept {
  if (!bytes.empty()) add(message_, bytes.data(), bytes.size());
}

void Hmac::finish(std::span<std::uint8_t> target) noexcept {
  assert(target.size() == digest_bytes_of(hash_));
  end(message_, target.data());
  message_ = outer_;
  add(message_, target.data(), target.size());
  end(message_, target.data());
  message_ = inner_;
}

void derive_key(Bytes secret, std::string_view label, Secret<32>& key) noexcept {
  static constexpr std::array<std::byte, 32> salt{};
  constexpr std::uint8_t first_block = 1;
  Secret<32> extracted;
  Hmac extract(Hash::sha_256, salt);
  extract.update(secret);
  extract.finish(extracted);
  Hmac expand(Hash::sha_256, std::as_bytes(std::span(extracted)));
  expand.update(label);
  expand.update(std::span(&first_block, 1));
  expand.finish(key);
}

}  // namespace weir::tls::detail
