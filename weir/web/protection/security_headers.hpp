// The headers that tell a browser to be strict with the pages of a site.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// SecurityOptions has the values of the headers. An empty text leaves a header out.
struct SecurityOptions {
  /// The sources of scripts, styles and other content. The default allows only those of the site.
  std::string content_security_policy =
      "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
      "object-src 'none'";
  std::string frame_options = "DENY";
  std::string referrer_policy = "no-referrer";
  std::string cross_origin_opener_policy = "same-origin";
  std::string cross_origin_resource_policy = "same-origin";
  std::string permissions_policy = {};
  /// True for `X-Content-Type-Options: nosniff`.
  bool no_sniff = true;
  /// Time for which a browser uses only https for this host; zero for none. It is sent only over
  /// https, to this server or to a trusted proxy (RFC 6797 §7.2).
  Duration strict_transport = std::chrono::days(365);
  bool strict_transport_subdomains = false;  ///< includes all subdomains of the host
};

/// The middleware that security_headers() makes. A header that a handler has set stays.
/// Threads: any.
class SecurityHeaders {
 public:
  /// Errors: throws std::invalid_argument for a value that a header cannot hold.
  explicit SecurityHeaders(const SecurityOptions& options = {});

  void after(Request& request, Response& response) const;

 private:
  void add(std::string_view name, std::string_view value);

  Headers headers_;
  std::string strict_transport_;
};

/// Returns the middleware for these options: `router.use(http::security_headers())`.
/// Errors: those of the constructor of SecurityHeaders.
inline SecurityHeaders security_headers(const SecurityOptions& options = {}) {
  return SecurityHeaders(options);
}

}  // namespace weir::http
