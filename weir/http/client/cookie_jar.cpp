#include "weir/http/client/cookie_jar.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/text/detail/ascii_case.hpp"
#include "weir/http/message/detail/set_cookie.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/net/dns/detail/host_name.hpp"

namespace weir::http {
namespace {

using weir::detail::product;
using weir::detail::sum;

constexpr Duration lifetime_max = std::chrono::days(400);

/// Returns true for an IP address. The last label of a name is never a number.
bool is_address(std::string_view host) noexcept {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return host.find(':') != host.npos || all_in(last, CharClass::digit);
}

/// Returns true if `host` is below `domain`.
bool is_below(std::string_view host, std::string_view domain) noexcept {
  return host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.' && !is_address(host);
}

/// Returns the path of a cookie without Path (RFC 6265 §5.1.4).
std::string_view default_path(std::string_view path) noexcept {
  const std::size_t last = path.rfind('/');
  return last == 0 || last == path.npos ? "/" : path.substr(0, last);
}

/// RFC 6265 §5.1.4.
bool path_matches(std::string_view path, std::string_view of_cookie) noexcept {
  return path.starts_with(of_cookie) && (path.size() == of_cookie.size() ||
                                         of_cookie.ends_with('/') || path[of_cookie.size()] == '/');
}

/// Returns true if the name promises what the attributes do not keep (RFC 6265bis §4.1.3).
bool breaks_prefix(const ParsedSetCookie& cookie) noexcept {
  const CookiePrefix prefix = cookie_prefix(cookie.name);
  if (prefix == CookiePrefix::none) return false;
  if (prefix == CookiePrefix::secure) return !cookie.secure;
  return !cookie.secure || !cookie.domain.empty() || cookie.path != "/";
}

WallTime expiry_of(const ParsedSetCookie& cookie, WallTime now) noexcept {
  if (cookie.max_age) {
    if (*cookie.max_age <= Duration::zero()) return WallTime::min();
    return now + std::min(*cookie.max_age, lifetime_max);
  }
  if (cookie.expires) return std::min(*cookie.expires, now + lifetime_max);
  return WallTime::max();
}

}  // namespace

bool CookieJar::store(const Url& url, std::string_view set_cookie, WallTime now) {
  if (set_cookie.size() > limits_.cookie_bytes_max) return false;
  const std::optional<ParsedSetCookie> parsed = parse_set_cookie(set_cookie);
  const bool https = url.scheme() == "https";
  if (!parsed || breaks_prefix(*parsed) || (parsed->secure && !https)) return false;
  std::string domain = lower_case(parsed->domain);
  const std::string_view host = dns::without_root(url.host());
  if (domain.empty()) domain = host;
  const bool is_parent = domain.find('.') != domain.npos && is_below(host, domain);
  if (domain != host && !is_parent) return false;
  const bool host_only =
      parsed->domain.empty() || domain.find('.') == domain.npos || is_address(domain);
  const std::string_view path = parsed->path.empty() ? default_path(url.path()) : parsed->path;
  const std::size_t bytes =
      parsed->name.size() + parsed->value.size() + domain.size() + path.size();
  if (bytes > limits_.cookie_bytes_max) return false;
  if (!https && hides_secure_cookie(parsed->name, domain, path, now)) return false;
  const auto same = std::ranges::find_if(cookies_, [&](const Stored& each) {
    return each.name == parsed->name && each.domain == domain && each.path == path &&
           each.host_only == host_only;
  });
  const WallTime expires = expiry_of(*parsed, now);
  if (expires <= now) {
    if (same != cookies_.end()) cookies_.erase(same);
    return true;
  }
  if (same != cookies_.end()) {
    same->value = std::string(parsed->value);
    same->expires = expires;
    same->secure = parsed->secure;
    same->used = ++uses_;
    return true;
  }
  if (limits_.cookies_max == 0 || limits_.cookies_per_domain_max == 0) return false;
  make_room(domain, now);
  Stored added{.name = std::string(parsed->name),
               .value = std::string(parsed->value),
               .domain = std::move(domain),
               .path = std::string(path),
               .expires = expires,
               .used = ++uses_,
               .host_only = host_only,
               .secure = parsed->secure};
  cookies_.push_back(std::move(added));
  return true;
}

/// Returns true if a server would get a cookie of this name, domain and path in place of a Secure
/// one, or before it (RFC 6265bis §5.7, "leave secure cookies alone").
bool CookieJar::hides_secure_cookie(std::string_view name, std::string_view domain,
                                    std::string_view path, WallTime now) const {
  return std::ranges::any_of(cookies_, [&](const Stored& each) {
    if (!each.secure || each.name != name || each.expires <= now) return false;
    const bool same_hosts =
        each.domain == domain || is_below(each.domain, domain) || is_below(domain, each.domain);
    return same_hosts && path_matches(path, each.path);
  });
}

/// Drops cookies until the limits allow one more of `domain`.
void CookieJar::make_room(std::string_view domain, WallTime now) {
  std::erase_if(cookies_, [now](const Stored& each) { return each.expires <= now; });
  const auto of_domain =
      std::ranges::count_if(cookies_, [&](const Stored& each) { return each.domain == domain; });
  if (static_cast<std::size_t>(of_domain) >= limits_.cookies_per_domain_max) {
    drop_least_recent(domain);
  }
  if (cookies_.size() >= limits_.cookies_max) drop_least_recent({});
}

/// Drops a cookie of `domain`, or of any domain if it is empty. Secure ones come last, so that a
/// plain server does not displace them (RFC 6265bis §5.7).
void CookieJar::drop_least_recent(std::string_view domain) {
  auto found = cookies_.end();
  for (auto each = cookies_.begin(); each != cookies_.end(); ++each) {
    if (!domain.empty() && each->domain != domain) continue;
    const auto rank = [](const Stored& cookie) { return std::pair(cookie.secure, cookie.used); };
    if (found == cookies_.end() || rank(*each) < rank(*found)) found = each;
  }
  if (found != cookies_.end()) cookies_.erase(found);
}

std::string CookieJar::header_for(const Url& url, WallTime now) {
  std::vector<Stored*> chosen;
  const std::string_view host = dns::without_root(url.host());
  for (Stored& each : cookies_) {
    const bool of_host = each.domain == host || (!each.host_only && is_below(host, each.domain));
    const bool sendable = !each.secure || url.scheme() == "https";
    if (of_host && sendable && each.expires > now && path_matches(url.path(), each.path)) {
      chosen.push_back(&each);
    }
  }
  std::ranges::sort(chosen, [](const Stored* a, const Stored* b) {
    return a->path.size() != b->path.size() ? a->path.size() > b->path.size() : a < b;
  });
  std::string header;
  for (Stored* const each : chosen) {
    const std::size_t size = each->name.size() + 1 + each->value.size() + (header.empty() ? 0 : 2);
    if (header.size() + size > limits_.header_bytes_max) break;
    if (!header.empty()) header += "; ";
    header.append(each->name).append("=").append(each->value);
    each->used = ++uses_;
  }
  return header;
}

std::uint64_t memory_bound(const CookieLimits& limits) noexcept {
  // A vector doubles its memory while the old memory still exists. A cookie that is replaced may
  // keep the memory of its longer value.
  constexpr std::uint64_t of_each = 3 * sizeof(CookieJar::Stored) + 4 * 32;
  const std::uint64_t each = sum({product(2, limits.cookie_bytes_max), of_each});
  return sum({product(each, limits.cookies_max), limits.header_bytes_max});
}

}  // namespace weir::http
