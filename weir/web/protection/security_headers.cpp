#include "weir/web/protection/security_headers.hpp"

#include <stdexcept>

#include "weir/web/clients/client_address.hpp"

namespace weir::http {

SecurityHeaders::SecurityHeaders(const SecurityOptions& options) {
  add("Content-Security-Policy", options.content_security_policy);
  add("X-Frame-Options", options.frame_options);
  add("Referrer-Policy", options.referrer_policy);
  add("Cross-Origin-Opener-Policy", options.cross_origin_opener_policy);
  add("Cross-Origin-Resource-Policy", options.cross_origin_resource_policy);
  add("Permissions-Policy", options.permissions_policy);
  if (options.no_sniff) add("X-Content-Type-Options", "nosniff");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.strict_transport);
  if (seconds.count() <= 0) return;
  strict_transport_ = "max-age=" + std::to_string(seconds.count());
  if (options.strict_transport_subdomains) strict_transport_ += "; includeSubDomains";
}

void SecurityHeaders::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!headers_.add(name, value)) {
    throw std::invalid_argument("security_headers: the value of " + std::string(name) +
                                " has a control character");
  }
}

void SecurityHeaders::after(Request& request, Response& response) const {
  const bool has_none = response.headers().empty();
  for (const HeaderField each : headers_) {
    if (has_none || !response.headers().contains(each.name)) {
      response.add_header(each.name, each.value);
    }
  }
  constexpr std::string_view name = "strict-transport-security";
  if (strict_transport_.empty() || !is_secure(request)) return;
  if (!response.headers().contains(name)) response.add_header(name, strict_transport_);
}

}  // namespace weir::http
