#include "weir/web/protection/cross_origin_protection.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/clients/client_address.hpp"

namespace weir::http {

namespace {

/// Returns the origin of a URL: what is before its path.
std::string_view origin_of_url(std::string_view url) noexcept {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == url.npos) return url;
  return url.substr(0, url.find_first_of("/?#", scheme_end + 3));
}

/// Returns the origin of the page that has sent a request; empty if the request does not tell it.
std::string_view sender_of(const Request& request) {
  const std::string_view origin = request.header("Origin").value_or("");
  if (!origin.empty() || !is_safe(request.method())) return origin;
  return origin_of_url(request.header("Referer").value_or(""));
}

}  // namespace

bool CrossOriginProtection::allows(const Request& request) const {
  if (is_safe(request.method()) && !checks_safe_methods_) return true;
  const RequestHead& head = request.head();
  for (const std::string_view name : {"Origin", "Sec-Fetch-Site", "Referer"}) {
    if (head.repeats(name)) return false;
  }
  const std::string_view origin = sender_of(request);
  const auto same = [origin](std::string_view each) { return is_same_origin(each, origin); };
  if (!origin.empty() && std::ranges::any_of(origins_, same)) return true;
  if (const auto site = request.header("Sec-Fetch-Site")) {
    return *site == "same-origin" || *site == "none";
  }
  const auto* const client = request.get<ClientAddress>();
  const bool secure = request.tls() != nullptr || (client != nullptr && client->is_secure);
  if (origin.empty() || is_same_host(origin, request.authority(), secure)) return true;
  return client != nullptr && is_same_host(origin, client->host, secure);
}

std::optional<Response> CrossOriginProtection::before(Request& request) const {
  if (allows(request)) return std::nullopt;
  return problem(Status::forbidden, "a page of another site may not send this request");
}

}  // namespace weir::http
