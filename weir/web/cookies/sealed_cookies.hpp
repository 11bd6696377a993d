// SealedCookies: cookies that a client cannot forge.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/web/cookies/cookie_keys.hpp"
#include "weir/web/cookies/set_cookie.hpp"

namespace weir::http {

/// Writes and reads signed or encrypted cookies:
///
///     const auto cookies = http::SealedCookies::encrypted_by(keys);
///     WEIR_TRY(cookies.set(response, {.name = "__Host-cart", .value = cart, .max_age = 24h}));
///     const std::optional<std::string> cart = cookies.get(request, "__Host-cart");
///
/// A client can send an old text again until its expiry: what must be valid once needs a store.
/// Threads: the functions that read the time, set() and get(), are for handlers, on any core.
class SealedCookies {
 public:
  /// The life of a cookie without `max_age` and `expires`.
  static constexpr Duration default_lifetime = std::chrono::hours(24);
  /// Number of cookies of one name that get() tries to open. A client may send more than one: other
  /// hosts of a domain can add cookies.
  static constexpr std::size_t repeated_max = 4;

  static SealedCookies signed_by(CookieKeys keys) noexcept {
    return SealedCookies(std::move(keys), CookieProtection::signed_value);
  }
  static SealedCookies encrypted_by(CookieKeys keys) noexcept {
    return SealedCookies(std::move(keys), CookieProtection::encrypted_value);
  }

  /// Seals the value of a cookie, of any bytes, and adds the cookie to a response. The expiry
  /// inside of the text is that of the cookie.
  /// Errors: those of CookieKeys::seal() and set_cookie().
  Result<> set(Response& response, SetCookie cookie) const;
  /// Returns the value of the first cookie of this name that was sealed by one of the keys and has
  /// not expired.
  std::optional<std::string> get(const Request& request, std::string_view name) const;

 private:
  SealedCookies(CookieKeys keys, CookieProtection protection) noexcept
      : keys_(std::move(keys)), protection_(protection) {}

  CookieKeys keys_;
  CookieProtection protection_;
};

}  // namespace weir::http
