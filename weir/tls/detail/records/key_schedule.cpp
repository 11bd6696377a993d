#include "weir/tls/detail/records/key_schedule.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>

namespace weir::tls::detail {
namespace {

constexpr std::string_view label_prefix = "tls13 ";

/// Fills `target` with digests. `make(digest, number)` replaces the digest before by the next one.
template <class Make>
void fill(Hash hash, std::span<std::uint8_t> target, Make make) noexcept {
  Digest room;
  const std::span digest = std::span(room).first(digest_bytes_of(hash));
  for (std::size_t number = 1; !target.empty(); ++number) {
    make(digest, number);
    const std::size_t count = std::min(target.size(), digest.size());
    std::memcpy(target.data(), digest.data(), count);
    target = target.subspan(count);
  }
}

}  // namespace

void expand_label(Hash hash, Bytes secret, std::string_view label, Bytes context,
                  std::span<std::uint8_t> target) noexcept {
  const std::size_t label_bytes = label_prefix.size() + label.size();
  assert(label_bytes <= 255 && context.size() <= 255);
  const std::array head{static_cast<std::uint8_t>(target.size() >> 8),
                        static_cast<std::uint8_t>(target.size()),
                        static_cast<std::uint8_t>(label_bytes)};
  const std::array context_bytes{static_cast<std::uint8_t>(context.size())};
  Hmac hmac(hash, secret);
  fill(hash, target, [&](std::span<std::uint8_t> digest, std::size_t number) {
    const std::array last{static_cast<std::uint8_t>(number)};
    if (number > 1) hmac.update(digest);
    hmac.update(head);
    hmac.update(label_prefix);
    hmac.update(label);
    hmac.update(context_bytes);
    hmac.update(context);
    hmac.update(last);
    hmac.finish(digest);
  });
}

void next_secret(Hash hash, Bytes previous, Bytes input, std::span<std::uint8_t> target) noexcept {
  static constexpr std::array<std::byte, 48> zeros{};
  const std::size_t size = digest_bytes_of(hash);
  assert(target.size() == size);
  Digest derived_room;
  const std::span derived = std::span(derived_room).first(size);
  if (!previous.empty()) {
    Digest of_nothing;
    const std::span transcript = std::span(of_nothing).first(size);
    digest(hash, {}, transcript);
    expand_label(hash, previous, "derived", std::as_bytes(transcript), derived);
  }
  // HKDF-Extract, RFC 5869, 2.2.
  Hmac hmac(hash, std::as_bytes(derived));
  hmac.update(input.empty() ? Bytes(zeros).first(size) : input);
  hmac.finish(target);
}

void pseudorandom(Hash hash, Bytes secret, std::span<const Bytes> seeds,
                  std::span<std::uint8_t> target) noexcept {
  Hmac hmac(hash, secret);
  Digest room;
  const std::span chain = std::span(room).first(digest_bytes_of(hash));  // A(i) of the RFC
  const auto add_seeds = [&] {
    for (const Bytes seed : seeds) hmac.update(seed);
  };
  fill(hash, target, [&](std::span<std::uint8_t> digest, std::size_t number) {
    if (number == 1) {
      add_seeds();
    } else {
      hmac.update(chain);
    }
    hmac.finish(chain);
    hmac.update(chain);
    add_seeds();
    hmac.finish(digest);
  });
}

}  // namespace weir::tls::detail
