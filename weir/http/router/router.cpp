#include "weir/http/router/router.hpp"

#include <cassert>

#include "weir/http/router/detail/route_updater.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir::http {

Router::Router() : updater_(std::make_unique<RouteUpdater>(store_)) {}
Router::~Router() = default;

Result<RouteId> Router::try_add(std::string_view method, Pattern pattern, Handler handler,
                                const RouteOptions& options, std::string* why,
                                const GroupMiddleware& middleware) {
  assert(!updater_->in_use() && "the routes of a served router are changed through LiveRoutes");
  auto route = std::make_unique<Route>(
      Route{std::string(method), std::move(pattern), std::move(handler), options});
  route->middleware = middleware;
  const auto added = store_.add(route);
  if (!added) {
    if (why != nullptr && added.error() == Errc::bad_input) {
      *why = "unsupported method (CONNECT, or not a token)";
    }
    return fail(added.error());
  }
  if (added->conflict == nullptr) return added->id;
  if (why != nullptr) *why = "conflicts with " + added->conflict->pattern.text();
  return fail(Errc::conflict);
}

void Router::add_middleware(Middleware middleware) {
  assert(!updater_->in_use() && "middleware is added before a router is served");
  middleware_.push_back(std::move(middleware));
  store_.table().set_middleware(middleware_);
}

RouteId Router::register_route(std::string_view method, std::string_view text, Handler handler,
                               const RouteOptions& options, const GroupMiddleware& middleware) {
  std::string why;
  Result<RouteId> added = RouteId();
  if (auto pattern = Pattern::parse(text)) {
    added = try_add(method, std::move(*pattern), std::move(handler), options, &why, middleware);
  } else {
    added = fail(pattern.error());
  }
  if (added) return *added;
  if (why.empty()) why = added.error().message();
  errors_.append(method).append(" ").append(text).append(": ").append(why).append("\n");
  return RouteId{RouteId::none};
}

void Router::check_prefix(std::string_view prefix) {
  std::string why;
  const auto pattern = Pattern::parse(prefix);
  if (!pattern) {
    why = pattern.error().message();
  } else if (pattern->shape().params > 0) {
    why = "the prefix of a group has no path parameters";
  } else if (prefix.ends_with('/')) {
    why = "the prefix of a group does not end with '/'";
  }
  if (!why.empty()) {
    errors_.append("group ").append(prefix).append(": ").append(why).append("\n");
  }
}

Result<> Router::check() const {
  if (errors_.empty()) return {};
  return fail(Errc::conflict);
}

void Router::log_errors(loop::PlatformLog& log) const {
  // relaxed: no other data depends on it.
  if (errors_logged_.exchange(true, std::memory_order_relaxed)) return;
  std::string_view left = errors_;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    log.log("weir: " + std::string(left.substr(0, end)));
    left.remove_prefix(end + 1);
  }
}

}  // namespace weir::http
