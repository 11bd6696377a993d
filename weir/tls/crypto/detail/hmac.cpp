#include "weir/tls/crypto/detail/hmac.hpp"

#include <cassert>
#include <cstring>

namespace weir::tls::detail {
namespace {

constexpr std::uint8_t inner_pad = 0x36;
constexpr std::uint8_t outer_pad = 0x5c;

constexpr std::size_t block_bytes_of(Hash hash) noexcept {
  return hash == Hash::sha_256 ? 64 : 128;
}

}  // namespace

template <std::size_t Size>
Secret<Size>::~Secret() {
  explicit_bzero(this->data(), Size);
}
template struct Secret<32>;
template struct Secret<48>;
template struct Secret<128>;

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
  explicit_bzero(&inner_, sizeof inner_);
  explicit_bzero(&outer_, sizeof outer_);
  explicit_bzero(&message_, sizeof message_);
}

void Hmac::begin(State& state, const Secret<128>& pad) const noexcept {
  init(state);
  add(state, pad.data(), block_bytes_of(hash_));
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
