// Protection against forged requests of other sites (CSRF): forms and scripts of their pages.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// CrossOriginProtectionOptions has the other sites that may send requests.
struct CrossOriginProtectionOptions {
  /// Origins such as "https://app.example.org".
  std::vector<std::string> origins = {};
  /// True to check safe methods too, such as GET: for pages that cost the server much work, or that
  /// no other site may embed. A link of another site then does not lead to them.
  bool safe_methods = false;
};

/// The middleware that cross_origin_protection() makes. It answers 403 to a request that a page of
/// another site may have caused. The method is then not safe (RFC 9110 §9.2.1), unless
/// `safe_methods` is set, and Sec-Fetch-Site is neither `same-origin` nor `none`. Without this
/// header, Origin must name the host of the request. A request of a safe method, such as the GET of
/// an image, may have no Origin; Referer must then name the host. A request with none of these
/// headers is not from a browser of today, and goes on. A request that repeats one of them gets 403
/// too. Behind trusted_proxies(), the host that a proxy names counts as well.
///
/// Browsers send Sec-Fetch-Site only to `https`, `localhost`, 127.0.0.0/8 and [::1], and a page can
/// leave out its Referer. With `safe_methods`, allowed_hosts() must therefore refuse other hosts of
/// a plain server: see HostAddresses.
///
/// Cookies with SameSite=Lax do not protect a login, which needs no cookie, or a site from its
/// subdomains. WebSockets check the origin themselves; see WebSocketOptions::origins.
/// Threads: any.
class CrossOriginProtection {
 public:
  explicit CrossOriginProtection(CrossOriginProtectionOptions options)
      : origins_(std::move(options.origins)), checks_safe_methods_(options.safe_methods) {}

  std::optional<Response> before(Request& request) const;

 private:
  bool allows(const Request& request) const;

  std::vector<std::string> origins_;
  bool checks_safe_methods_;
};

/// Returns the middleware for these options: `router.use(http::cross_origin_protection())`.
inline CrossOriginProtection cross_origin_protection(CrossOriginProtectionOptions options = {}) {
  return CrossOriginProtection(std::move(options));
}

}  // namespace weir::http
