// The checks of each request to the admin listener.
#include "weir/admin/detail/listener_parts.hpp"

#include <utility>

namespace weir::admin {
namespace {

http::AllowedHosts hosts_of(std::vector<std::string> hosts) {
  hosts.emplace_back("localhost");
  return http::allowed_hosts({.hosts = std::move(hosts), .addresses = true});
}

bool is_health(std::string_view path) {
  return path == "/livez" || path == "/readyz" || path == "/startupz";
}

}  // namespace

bool is_local(const Endpoint& endpoint) noexcept {
  if (endpoint.family() == os::AddressFamily::local) return true;
  if (!endpoint.is_inet()) return false;
  const std::string text = endpoint.with_port(0).to_string();
  return text == "[::1]:0" || text.starts_with("127.");
}

AdminGuard::AdminGuard(const std::string& token, const std::vector<std::string>& hosts,
                       bool any_host)
    : any_host_(any_host), hosts_(hosts_of(hosts)) {
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
  return has_bearer ? bearer_->before(request) : basic_->before(request);
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
