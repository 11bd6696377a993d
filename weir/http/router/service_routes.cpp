#include "weir/http/router/service_routes.hpp"

#include <algorithm>
#include <cassert>

namespace weir::http {
namespace {

/// Returns a key that two routes share if and only if they are for the same requests. Each text
/// follows its length, because decoded texts may contain any character.
std::string key_of(const Route& route) {
  std::string key = route.method;
  for (const Pattern::Segment& segment : route.pattern.segments()) {
    constexpr std::string_view kinds = "lecr";
    static_assert(static_cast<int>(SegmentText::Kind::wildcard) == 3);
    key += kinds[static_cast<std::size_t>(segment.kind)];
    key.append(std::to_string(segment.text.size())).append(" ").append(segment.text);
  }
  return key;
}

}  // namespace

void ServiceRoutes::add_in(const Surroundings& around, std::string_view method,
                           std::string_view text, Result<Pattern> pattern, AnyHandler handler,
                           const RouteOptions& options) {
  assert(!closed_ && "routes are registered before their owner has started");
  const auto add_error = [&](std::string_view what) {
    if (!errors_.empty()) errors_ += "; ";
    errors_.append(method).append(" ").append(text).append(": ").append(what);
  };
  if (!pattern) return add_error(pattern.error().message());
  if (const auto error = body_error(handler, around); !error.empty()) return add_error(error);
  if (!bind_values(handler, around)) {
    return add_error("the handler takes " +
                     std::get<UnboundHandler>(handler).services_text(around) +
                     ", which no middleware of its group sets (a service takes it in its "
                     "constructor)");
  }
  auto route = std::make_unique<Route>(Route{std::string(method), std::move(*pattern),
                                             std::get<Handler>(std::move(handler)), options});
  route->middleware = around.middleware;
  std::string key = key_of(*route);
  const auto same = std::ranges::find(registered_, key, &Registered::key);
  if (same != registered_.end()) return add_error("conflicts with " + same->route->pattern.text());
  registered_.push_back({std::move(route), std::move(key)});
}

}  // namespace weir::http
