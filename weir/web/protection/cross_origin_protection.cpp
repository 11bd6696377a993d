#include "weir/web/protection/cross_origin_protection.hpp"

#include <algorithm>
#include <string_view>

#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace weir::http {

bool CrossOriginProtection::allows(const Request& request) const {
  if (is_safe(request.method()) && !checks_safe_methods_) return true;
  const RequestHead& head = request.head();
  if (head.repeats("Origin") || head.repeats("Sec-Fetch-Site")) return false;
  const std::string_view origin = request.header("Origin").value_or("");
  const auto same = [origin](std::string_view each) { return is_same_origin(each, origin); };
  if (!origin.empty() && std::ranges::any_of(origins_, same)) return true;
  if (const auto site = request.header("Sec-Fetch-Site")) {
    return *site == "same-origin" || *site == "none";
  }
  if (origin.empty() || is_same_host(origin, request.authority())) return true;
  const auto* const client = request.get<ClientAddress>();
  return client != nullptr && is_same_host(origin, client->host);
}

std::optional<Response> CrossOriginProtection::before(Request& request) const {
  if (allows(request)) return std::nullopt;
  return problem(Status::forbidden, "a page of another site may not send this request");
}

}  // namespace weir::http
