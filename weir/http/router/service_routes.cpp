#include "weir/http/router/service_routes.hpp"

#include <algorithm>
#include <cassert>

namespace weir::http {
namespace {

/// Two routes have the same key if and only if they are for the same requests. The length of each
/// text goes before it, since decoded texts hold any character.
std::string key_of(const Route& route) {
  std::string key = route.method;
  for (const Pattern::Segment& segment : route.pattern.segments()) {
    constexpr std::string_view kinds = "lecr";
    static_assert(static_cast<int>(SegmentText::Kind::rest) == 3);
    key += kinds[static_cast<std::size_t>(segment.kind)];
    key.append(std::to_string(segment.text.size())).append(" ").append(segment.text);
  }
  return key;
}

}  // namespace

void Routes::keep(std::string_view method, std::string_view text, Result<Pattern> pattern,
                  Handler handler, const RouteOptions& options) {
  assert(!closed_ && "routes are registered before their owner has started");
  const auto complain = [&](std::string_view what) {
    if (!faults_.empty()) faults_ += "; ";
    faults_.append(method).append(" ").append(text).append(": ").append(what);
  };
  if (!pattern) return complain(pattern.error().message());
  auto route = std::make_unique<Route>(
      Route{std::string(method), std::move(*pattern), std::move(handler), options});
  std::string key = key_of(*route);
  const auto same = std::ranges::find(kept_, key, &Kept::key);
  if (same != kept_.end()) return complain("the same as " + same->route->pattern.text());
  kept_.push_back({std::move(route), std::move(key)});
}

}  // namespace weir::http
