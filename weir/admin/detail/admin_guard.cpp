// The checks of each request to the admin listener.
#include "weir/admin/detail/listener_parts.hpp"

#include <utility>

#include "weir/os/ip_range.hpp"

namespace weir::admin {
namespace {

http::AllowedHosts hosts_of(const AdminListenerOptions& options) {
  std::vector<std::string> hosts = options.hosts;
  hosts.emplace_back("localhost");
  const auto addresses =
      is_local(options.endpoint) ? http::HostAddresses::loopback : http::HostAddresses::all;
  return http::allowed_hosts({.hosts = std::move(hosts), .addresses = addresses});
}

bool is_health(std::string_view path) {
  return path == "/livez" || path == "/readyz" || path == "/startupz";
}

/// Returns true if a request for this decoded path costs the service more than a page.
bool is_costly(std::string_view path) {
  return path == "/profile";
}

}  // namespace

bool is_local(const Endpoint& endpoint) noexcept {
  return endpoint.family() == os::AddressFamily::local || os::is_loopback(endpoint);
}

AdminGuard::AdminGuard(const AdminListenerOptions& options)
    : any_host_(!options.endpoint.is_inet()),
      is_remote_and_plain_(!is_local(options.endpoint) && options.tls == nullptr),
      hosts_(hosts_of(options)) {
  const std::string& token = options.token;
  if (token.empty()) return;
  bearer_.emplace(http::BearerAuthOptions{.users = {{token, "admin"}}});
  basic_.emplace(http::BasicAuthOptions{.realm = "admin", .tokens = {{token, "admin"}}});
}

std::optional<http::Response> AdminGuard::before(http::Request& request) const {
  if (!any_host_ && !hosts_.allows(request.authority())) {
    return http::Response(http::Status::misdirected_request);
  }
  if (!bearer_) return std::nullopt;
  if (is_health(request.path_text()) && request.query_text().empty()) return std::nullopt;
  const auto given = request.header("Authorization");
  const bool has_bearer = given && given->size() > 7 &&
                          (given->starts_with("Bearer ") || given->starts_with("bearer "));
  // A browser adds Basic credentials to requests of any page, and does not say which page it is.
  const bool needs_bearer = is_remote_and_plain_ && is_costly(request.path());
  return has_bearer || needs_bearer ? bearer_->before(request) : basic_->before(request);
}

void SecurityHeaders::after(http::Request&, http::Response& response) const {
  // A page may have a policy of its own, such as one for its inline style.
  if (!response.headers().get("Content-Security-Policy")) {
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action "
                        "'self'; frame-ancestors 'none'");
  }
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  // Not "no-referrer": a browser would then send a form with "Origin: null".
  response.set_header("Referrer-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

}  // namespace weir::admin
