// SHA256_Init() and the like are deprecated in favour of EVP, whose contexts are allocated.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "weir/tls/detail/records/key_schedule.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace weir::tls::detail {
namespace {

constexpr std::string_view label_prefix = "tls13 ";

struct Sha256 {
  using State = SHA256_CTX;
  static constexpr std::size_t digest_bytes = SHA256_DIGEST_LENGTH;
  static constexpr std::size_t block_bytes = SHA256_CBLOCK;
  static void begin(State& state) noexcept { SHA256_Init(&state); }
  static void update(State& state, const void* data, std::size_t size) noexcept {
    SHA256_Update(&state, data, size);
  }
  static void finish(State& state, std::uint8_t* digest) noexcept { SHA256_Final(digest, &state); }
};

struct Sha384 {
  using State = SHA512_CTX;
  static constexpr std::size_t digest_bytes = SHA384_DIGEST_LENGTH;
  static constexpr std::size_t block_bytes = SHA512_CBLOCK;
  static void begin(State& state) noexcept { SHA384_Init(&state); }
  static void update(State& state, const void* data, std::size_t size) noexcept {
    SHA384_Update(&state, data, size);
  }
  static void finish(State& state, std::uint8_t* digest) noexcept { SHA384_Final(digest, &state); }
};

/// Bytes of secrets, erased at their end.
template <std::size_t Size>
struct Secret : std::array<std::uint8_t, Size> {
  Secret() noexcept { this->fill(0); }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { OPENSSL_cleanse(this->data(), Size); }
};

/// HMAC (RFC 2104) of several messages with one key.
template <class Sha>
class Hmac {
 public:
  using Digest = Secret<Sha::digest_bytes>;

  explicit Hmac(Bytes key) noexcept {
    Secret<Sha::block_bytes> pad;
    if (key.size() > pad.size()) {
      Sha::begin(message_);
      Sha::update(message_, key.data(), key.size());
      Sha::finish(message_, pad.data());
    } else if (!key.empty()) {
      std::memcpy(pad.data(), key.data(), key.size());
    }
    for (std::uint8_t& each : pad) each ^= inner_pad;
    Sha::begin(inner_);
    Sha::update(inner_, pad.data(), pad.size());
    for (std::uint8_t& each : pad) each ^= inner_pad ^ outer_pad;
    Sha::begin(outer_);
    Sha::update(outer_, pad.data(), pad.size());
    message_ = inner_;
  }
  Hmac(const Hmac&) = delete;
  Hmac& operator=(const Hmac&) = delete;
  ~Hmac() {
    OPENSSL_cleanse(&inner_, sizeof inner_);
    OPENSSL_cleanse(&outer_, sizeof outer_);
    OPENSSL_cleanse(&message_, sizeof message_);
  }

  void update(const void* data, std::size_t size) noexcept {
    if (size != 0) Sha::update(message_, data, size);
  }
  void update(Bytes bytes) noexcept { update(bytes.data(), bytes.size()); }
  void update(std::string_view text) noexcept { update(text.data(), text.size()); }
  void update(std::uint8_t byte) noexcept { update(&byte, 1); }
  /// Ends the message, and begins the next one. `digest` has digest_bytes.
  void finish(std::uint8_t* digest) noexcept {
    Sha::finish(message_, digest);
    message_ = outer_;
    Sha::update(message_, digest, Sha::digest_bytes);
    Sha::finish(message_, digest);
    message_ = inner_;
  }

 private:
  static constexpr std::uint8_t inner_pad = 0x36;
  static constexpr std::uint8_t outer_pad = 0x5c;

  typename Sha::State inner_;
  typename Sha::State outer_;
  typename Sha::State message_;
};

Bytes bytes_of(std::span<const std::uint8_t> secret) noexcept {
  return std::as_bytes(secret);
}

/// Fills `target` with digests of `make(digest, number)`, which follows the digest before it.
template <class Sha, class Make>
void fill(std::span<std::uint8_t> target, Make make) noexcept {
  Secret<Sha::digest_bytes> digest;
  for (std::size_t number = 1; !target.empty(); ++number) {
    make(digest.data(), number);
    const std::size_t count = std::min(target.size(), digest.size());
    std::memcpy(target.data(), digest.data(), count);
    target = target.subspan(count);
  }
}

template <class Sha>
void expand(Bytes secret, std::string_view label, Bytes context,
            std::span<std::uint8_t> target) noexcept {
  const std::size_t label_bytes = label_prefix.size() + label.size();
  assert(label_bytes <= 255 && context.size() <= 255);
  const std::array<std::uint8_t, 3> head{static_cast<std::uint8_t>(target.size() >> 8),
                                         static_cast<std::uint8_t>(target.size()),
                                         static_cast<std::uint8_t>(label_bytes)};
  Hmac<Sha> hmac(secret);
  fill<Sha>(target, [&](std::uint8_t* digest, std::size_t number) {
    if (number > 1) hmac.update(digest, Sha::digest_bytes);
    hmac.update(head.data(), head.size());
    hmac.update(label_prefix);
    hmac.update(label);
    hmac.update(static_cast<std::uint8_t>(context.size()));
    hmac.update(context);
    hmac.update(static_cast<std::uint8_t>(number));
    hmac.finish(digest);
  });
}

template <class Sha>
void mix(Bytes previous, Bytes input, std::span<std::uint8_t> target) noexcept {
  assert(target.size() == Sha::digest_bytes);
  static constexpr std::array<std::uint8_t, Sha::digest_bytes> zeros{};
  Secret<Sha::digest_bytes> derived;
  if (!previous.empty()) {
    std::array<std::uint8_t, Sha::digest_bytes> nothing{};  // the digest of no messages
    typename Sha::State state;
    Sha::begin(state);
    Sha::finish(state, nothing.data());
    expand<Sha>(previous, "derived", bytes_of(nothing), derived);
  }
  // HKDF-Extract, RFC 5869, 2.2. HMAC treats a key of zeros as no key.
  Hmac<Sha> hmac(bytes_of(derived));
  hmac.update(input.empty() ? bytes_of(zeros) : input);
  hmac.finish(target.data());
}

template <class Sha>
void generate(Bytes secret, std::span<const Bytes> seeds, std::span<std::uint8_t> target) noexcept {
  Hmac<Sha> hmac(secret);
  Secret<Sha::digest_bytes> chain;  // A(i) of the RFC
  fill<Sha>(target, [&](std::uint8_t* digest, std::size_t number) {
    if (number > 1) {
      hmac.update(chain.data(), chain.size());
    } else {
      for (const Bytes seed : seeds) hmac.update(seed);
    }
    hmac.finish(chain.data());
    hmac.update(chain.data(), chain.size());
    for (const Bytes seed : seeds) hmac.update(seed);
    hmac.finish(digest);
  });
}

}  // namespace

void expand_label(Hash hash, Bytes secret, std::string_view label, Bytes context,
                  std::span<std::uint8_t> target) noexcept {
  hash == Hash::sha_384 ? expand<Sha384>(secret, label, context, target)
                        : expand<Sha256>(secret, label, context, target);
}

void next_secret(Hash hash, Bytes previous, Bytes input, std::span<std::uint8_t> target) noexcept {
  hash == Hash::sha_384 ? mix<Sha384>(previous, input, target)
                        : mix<Sha256>(previous, input, target);
}

void pseudorandom(Hash hash, Bytes secret, std::span<const Bytes> seeds,
                  std::span<std::uint8_t> target) noexcept {
  hash == Hash::sha_384 ? generate<Sha384>(secret, seeds, target)
                        : generate<Sha256>(secret, seeds, target);
}

}  // namespace weir::tls::detail
