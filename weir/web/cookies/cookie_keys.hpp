// CookieKeys: the keys that sign and encrypt cookies, with rotation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir::http {

/// The protection of a sealed cookie.
enum class CookieProtection : std::uint8_t {
  signed_value,  ///< HMAC-SHA-256: the client can read the value, but not change it
  /// AES-256-GCM: the client can neither read nor change the value. It needs OpenSSL.
  encrypted_value,
};

/// The keys of one service, made from secrets. The first key seals, and all keys open: a new secret
/// goes to the front, and the old one leaves the list when its last cookie has expired. Copies
/// share the keys. One key encrypts at most 2^32 cookies, after which it must be replaced.
///
/// A sealed text is base64url of the time of its expiry, the value, and a signature or tag. The
/// name of the cookie is a part of what is signed, so that the text of one cookie is not valid as
/// that of another one.
/// Threads: any; a CookieKeys does not change.
class CookieKeys {
 public:
  static constexpr std::size_t secret_bytes_min = 32;
  static constexpr std::size_t keys_max = 8;

  /// Makes the keys from secrets of at least 32 random bytes each (`openssl rand -hex 32`), the
  /// newest first.
  /// Errors: bad_configuration for a shorter secret, and for none or more than 8.
  static Result<CookieKeys> from_secrets(std::span<const std::string> secrets);
  static Result<CookieKeys> from_secret(const std::string& secret) {
    return from_secrets({&secret, 1});
  }
  /// Makes a random key. Other processes, and this program after a restart, do not open its
  /// cookies.
  /// Errors: unsupported if OpenSSL's random generator fails.
  static Result<CookieKeys> random();

  /// Returns the text of a cookie of this name with this value, of any bytes. open() accepts it
  /// until `expires`.
  /// Errors: limit_reached if name and text exceed SetCookie::bytes_max; unsupported if OpenSSL
  /// fails, and for an encrypted value in a build without OpenSSL.
  Result<std::string> seal(CookieProtection protection, std::string_view name,
                           std::string_view value, WallTime expires) const;
  /// Returns the value of a text that seal() has made for this name; nullopt for any other text,
  /// and after its expiry.
  std::optional<std::string> open(CookieProtection protection, std::string_view name,
                                  std::string_view text, WallTime now) const;

 private:
  struct Keys;
  explicit CookieKeys(std::shared_ptr<const Keys> keys) noexcept : keys_(std::move(keys)) {}

  std::shared_ptr<const Keys> keys_;
};

}  // namespace weir::http
