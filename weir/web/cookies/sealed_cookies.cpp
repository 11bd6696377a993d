#include "weir/web/cookies/sealed_cookies.hpp"

#include <algorithm>

#include "weir/web/cookies/detail/wall_clock.hpp"
#include "weir/web/cookies/request_cookies.hpp"

namespace weir::http {
namespace {

/// Returns the expiry of a cookie. A WallTime cannot hold every sum.
WallTime expiry_of(const SetCookie& cookie) {
  if (!cookie.max_age && cookie.expires) return *cookie.expires;
  constexpr Duration lifetime_max = std::chrono::days(400);  // RFC 6265bis §5.5
  return detail::wall_time() +
         std::min(cookie.max_age.value_or(SealedCookies::default_lifetime), lifetime_max);
}

}  // namespace

Result<> SealedCookies::set(Response& response, SetCookie cookie) const {
  WEIR_TRY(cookie.value, keys_.seal(protection_, cookie.name, cookie.value, expiry_of(cookie)));
  return set_cookie(response, cookie);
}

std::optional<std::string> SealedCookies::get(const Request& request, std::string_view name) const {
  std::size_t tried = 0;
  for (const RequestCookie& each : RequestCookies(request)) {
    if (each.name != name) continue;
    if (auto value = keys_.open(protection_, name, each.value, detail::wall_time())) return value;
    if (++tried == repeated_max) break;
  }
  return std::nullopt;
}

}  // namespace weir::http
