#include "weir/http/router/router.hpp"

#include <cassert>
#include <utility>

#include "weir/http/router/detail/route_updater.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir::http {

Router::Router()
    : store_(std::make_unique<RouteStore>()), updater_(std::make_unique<RouteUpdater>(*store_)) {}
Router::~Router() = default;

Router::Router(Router&& other) noexcept
    : store_(std::move(other.store_)),
      middleware_(std::move(other.middleware_)),
      id_header_(std::move(other.id_header_)),
      errors_(std::move(other.errors_)),
      updater_(std::move(other.updater_)) {
  assert(!updater_->in_use() && "a served router is not moved");
}

Result<RouteId> Router::try_add(std::string_view method, Pattern pattern, Handler handler,
                                const RouteOptions& options, std::string* why,
                                const GroupMiddleware& middleware) {
  assert(!updater_->in_use() && "the routes of a served router are changed through LiveRoutes");
  auto route = std::make_unique<Route>(
      Route{std::string(method), std::move(pattern), std::move(handler), options});
  route->middleware = middleware;
  const auto added = store_->add(route);
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
  store_->table().set_middleware(middleware_);
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
  add_error(method, text, why);
  return RouteId{RouteId::none};
}

void Router::add_error(std::string_view what, std::string_view where, std::string_view why) {
  errors_.append(what).append(" ").append(where).append(": ").append(why).append("\n");
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
  if (!why.empty()) add_error("group", prefix, why);
}

void Router::set_renderer(std::string_view prefix, ErrorRenderer render) {
  assert(!updater_->in_use() && "the form of errors is set before a router is served");
  if (const auto pattern = Pattern::parse(prefix.empty() ? "/" : prefix))
    store_->rules().at(*pattern).render_error = std::move(render);
}

void Router::set_fallback(std::string_view prefix, Handler handler, const RouteOptions& options,
                          const GroupMiddleware& middleware) {
  assert(!updater_->in_use() && "a fallback is set before a router is served");
  auto pattern = Pattern::parse(prefix.empty() ? "/" : prefix);
  if (!pattern) return;  // check_prefix() has reported it
  PrefixRule& rule = store_->rules().at(*pattern);
  auto route =
      std::make_unique<Route>(Route{"fallback", std::move(*pattern), std::move(handler), options});
  route->middleware = middleware;
  route->slot = store_->slots().acquire();
  rule.fallback = std::move(route);
}

void Router::mount(std::string_view prefix, Router&& inner) {
  mount(prefix, {}, inner);
}

void Router::mount(std::string_view prefix, const GroupMiddleware& middleware, Router& inner) {
  assert(!inner.updater_->in_use() && "a served router is not mounted");
  check_prefix(prefix);
  errors_.append(std::exchange(inner.errors_, {}));
  GroupMiddleware outer = middleware;
  for (Middleware& each : std::exchange(inner.middleware_, {}))
    outer.push_back(std::make_shared<const Middleware>(std::move(each)));
  inner.store_->table().set_middleware({});
  const auto around = [&outer](const Route& route) {
    GroupMiddleware whole = outer;
    whole.insert(whole.end(), route.middleware.begin(), route.middleware.end());
    return whole;
  };
  const auto below = [prefix](std::string_view path) {
    return std::string(prefix) + std::string(path == "/" ? std::string_view() : path);
  };
  for (PrefixRule& each : inner.store_->rules().all()) {
    std::string path(prefix);
    for (const std::string& segment : each.prefix) path.append("/").append(encode_segment(segment));
    if (each.render_error) set_renderer(path, std::move(each.render_error));
    if (each.fallback == nullptr) continue;
    Route& fallback = *each.fallback;
    set_fallback(path, std::move(fallback.handler), fallback.options, around(fallback));
  }
  for (const auto& each : inner.store_->extract_all()) {
    register_route(each->method, below(each->pattern.text()), std::move(each->handler),
                   each->options, around(*each));
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
