#include "weir/web/cookies/cookie_keys.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/text/detail/base64.hpp"
#include "weir/base/text/detail/constant_time.hpp"
#include "weir/tls/crypto/detail/aes_gcm.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/web/cookies/set_cookie.hpp"

namespace weir::http {
namespace {

using tls::detail::AesGcmKey;
using tls::detail::derive_key;
using tls::detail::Hash;
using tls::detail::Hmac;

constexpr std::size_t time_bytes = 8;
constexpr std::size_t mac_bytes = 32;
constexpr std::size_t sealed_bytes_max = base64_bytes_max(SetCookie::bytes_max);

using Mac = std::array<std::uint8_t, mac_bytes>;

void append_number(std::string& text, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
}

std::uint64_t seconds_of(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

/// Returns the value of opened bytes, which begin with the time of their expiry.
std::optional<std::string> value_of(Bytes opened, WallTime now) {
  if (opened.size() < time_bytes) return std::nullopt;
  std::uint64_t expires = 0;
  for (const std::byte each : opened.first(time_bytes)) {
    expires = expires << 8 | std::to_integer<std::uint64_t>(each);
  }
  if (seconds_of(now) >= expires) return std::nullopt;
  return std::string(to_text(opened.subspan(time_bytes)));
}

Hmac signing_key(Bytes secret) {
  tls::detail::Secret<32> key;
  derive_key(secret, "weir signed cookies 1", key);
  return Hmac(Hash::sha_256, std::as_bytes(std::span(key)));
}

struct Key {
  explicit Key(Bytes secret)
      : signing(signing_key(secret)), encryption(secret, "weir encrypted cookies 1") {}

  /// Signs a name and bytes. The size of the name stands before it, so that no byte can move from
  /// one to the other.
  Mac sign(std::string_view name, Bytes bytes) const {
    std::string size;
    append_number(size, name.size());
    Hmac hmac = signing;
    hmac.update(std::string_view(size));
    hmac.update(name);
    hmac.update(bytes);
    Mac mac{};
    hmac.finish(mac);
    return mac;
  }
  std::optional<Bytes> open_signed(std::string_view name, Bytes sealed) const {
    if (sealed.size() < mac_bytes) return std::nullopt;
    const Bytes bytes = sealed.first(sealed.size() - mac_bytes);
    const Mac mac = sign(name, bytes);
    if (!constant_time_equal(std::as_bytes(std::span(mac)), sealed.last(mac_bytes))) {
      return std::nullopt;
    }
    return bytes;
  }

  Hmac signing;
  AesGcmKey encryption;
};

}  // namespace

struct CookieKeys::Keys {
  std::vector<std::unique_ptr<const Key>> all;  // a key stays where its secret is
};

Result<CookieKeys> CookieKeys::from_secrets(std::span<const std::string> secrets) {
  if (secrets.empty() || secrets.size() > keys_max) return fail(Errc::bad_configuration);
  auto keys = std::make_shared<Keys>();
  for (const std::string& secret : secrets) {
    if (secret.size() < secret_bytes_min) return fail(Errc::bad_configuration);
    keys->all.push_back(std::make_unique<const Key>(to_bytes(secret)));
  }
  return CookieKeys(std::move(keys));
}

Result<CookieKeys> CookieKeys::random() {
  std::array<std::byte, secret_bytes_min> secret{};
  if (!tls::detail::fill_random(secret)) return fail(Errc::unsupported);
  auto keys = std::make_shared<Keys>();
  keys->all.push_back(std::make_unique<const Key>(secret));
  return CookieKeys(std::move(keys));
}

Result<std::string> CookieKeys::seal(CookieProtection protection, std::string_view name,
                                     std::string_view value, WallTime expires) const {
  const bool encrypts = protection == CookieProtection::encrypted_value;
  const std::size_t overhead = encrypts ? AesGcmKey::overhead : mac_bytes;
  if (value.size() > sealed_bytes_max ||
      name.size() + base64url_size(time_bytes + value.size() + overhead) > SetCookie::bytes_max) {
    return fail(Errc::limit_reached);
  }
  const Key& key = *keys_->all.front();
  std::string plain;
  plain.reserve(time_bytes + value.size() + mac_bytes);
  append_number(plain, seconds_of(expires));
  plain.append(value);
  if (!encrypts) {
    const Mac mac = key.sign(name, to_bytes(plain));
    plain.append(reinterpret_cast<const char*>(mac.data()), mac.size());
    return to_base64url(to_bytes(plain));
  }
  std::vector<std::byte> sealed(plain.size() + AesGcmKey::overhead);
  if (!key.encryption.seal(to_bytes(name), to_bytes(plain), sealed.data())) {
    return fail(Errc::unsupported);
  }
  return to_base64url(sealed);
}

std::optional<std::string> CookieKeys::open(CookieProtection protection, std::string_view name,
                                            std::string_view text, WallTime now) const {
  if (text.size() > SetCookie::bytes_max) return std::nullopt;
  std::array<std::byte, sealed_bytes_max> room;
  const std::optional<std::size_t> size = read_base64url(text, room.data());
  if (!size) return std::nullopt;
  const Bytes sealed = Bytes(room).first(*size);
  std::array<std::byte, sealed_bytes_max> copy;  // opening destroys it
  for (const auto& key : keys_->all) {
    if (protection == CookieProtection::signed_value) {
      if (const auto opened = key->open_signed(name, sealed)) return value_of(*opened, now);
    } else {
      std::ranges::copy(sealed, copy.begin());
      const MutableBytes bytes = MutableBytes(copy).first(*size);
      if (const auto opened = key->encryption.open(to_bytes(name), bytes)) {
        return value_of(*opened, now);
      }
    }
  }
  return std::nullopt;
}

}  // namespace weir::http
