#include "weir/http/router/router.hpp"

#include <algorithm>
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
      surroundings_(std::move(other.surroundings_)),
      unbound_(std::move(other.unbound_)),
      unbound_fallbacks_(std::move(other.unbound_fallbacks_)),
      bound_by_app_(other.bound_by_app_),
      id_header_(std::move(other.id_header_)),
      errors_(std::move(other.errors_)),
      updater_(std::move(other.updater_)) {
  assert(!updater_->in_use() && "a served router is not moved");
}

/// Adds a route, or keeps it until its services are bound.
Result<RouteId> Router::add_route(std::string_view method, Pattern pattern, AnyHandler handler,
                                  const RouteOptions& options, const Surroundings& around,
                                  std::string* why) {
  assert(!updater_->in_use() && "the routes of a served router are changed through LiveRoutes");
  if (auto error = body_error(handler, around); !error.empty()) {
    if (why != nullptr) *why = std::move(error);
    return fail(Errc::bad_configuration);
  }
  if (!bind_values(handler, around)) {
    unbound_.push_back({std::string(method), std::move(pattern),
                        std::get<UnboundHandler>(std::move(handler)), options, around});
    return RouteId{RouteId::none};
  }
  auto route = std::make_unique<Route>(Route{std::string(method), std::move(pattern),
                                             std::get<Handler>(std::move(handler)), options});
  route->middleware = around.middleware;
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

RouteId Router::register_route(std::string_view method, std::string_view text, AnyHandler handler,
                               const RouteOptions& options, const Surroundings& around) {
  std::string why;
  Result<RouteId> added = RouteId();
  if (auto pattern = Pattern::parse(text)) {
    added = add_route(method, std::move(*pattern), std::move(handler), options, around, &why);
  } else {
    added = fail(pattern.error());
  }
  if (added) return *added;
  add_error(method, text, why.empty() ? added.error().message() : why);
  return RouteId{RouteId::none};
}

void Router::add_error(std::string_view what, std::string_view where, std::string_view why) {
  errors_.append(what).append(" ").append(where).append(": ").append(why).append("\n");
}

void Router::add_middleware(Middleware middleware) {
  assert(!updater_->in_use() && "middleware is added before a router is served");
  middleware_.push_back(std::move(middleware));
  store_->table().set_middleware(middleware_);
}

void Router::bind_services(const ServiceRefs& services) {
  assert(!bound_by_app_ && "the App that serves a router gives services to its handlers");
  for (UnboundRoute& route : std::exchange(unbound_, {})) {
    std::vector<void*> objects;
    for (const HandlerReference& each : route.handler.references()) {
      if (route.around.sets(each)) continue;
      objects.push_back(each.find_in(services));
      if (objects.back() == nullptr) {
        add_error(route.method, route.pattern.text(),
                  "the handler takes " + each.text() +
                      ", which bind() does not give (one call gives all services)");
      }
    }
    if (std::ranges::find(objects, nullptr) != objects.end()) continue;
    register_route(route.method, route.pattern.text(), route.bind(objects), route.options,
                   route.around);
  }
}

std::string Router::error_text() const {
  std::string text = errors_;
  const auto add = [&text](const UnboundRoute& route, std::string_view why) {
    text.append(route.name()).append(": the handler takes ");
    text.append(route.handler.services_text(route.around)).append(why).append("\n");
  };
  for (const UnboundRoute& each : unbound_fallbacks_) {
    add(each,
        ", but a fallback takes no services (set a value by middleware of a group<T>(), or "
        "write a route)");
  }
  if (bound_by_app_) return text;
  for (const UnboundRoute& each : unbound_) {
    add(each,
        ", but no App or bind() gives services to the handlers of this router (write "
        "router.bind(service), or serve_http(app, router) and app.run(); take a body by value)");
  }
  return text;
}

void Router::check_prefix(std::string_view prefix) {
  if (prefix.empty()) return;
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

void Router::set_fallback(std::string_view prefix, AnyHandler handler, const RouteOptions& options,
                          const Surroundings& around) {
  assert(!updater_->in_use() && "a fallback is set before a router is served");
  auto pattern = Pattern::parse(prefix.empty() ? "/" : prefix);
  if (!pattern) return;  // check_prefix() has reported it
  std::erase_if(unbound_fallbacks_, [&pattern](const UnboundRoute& each) {
    return each.pattern.text() == pattern->text();
  });
  if (const auto error = body_error(handler, around); !error.empty())
    return add_error("fallback", pattern->text(), error);
  if (!bind_values(handler, around)) {
    unbound_fallbacks_.push_back({"fallback", std::move(*pattern),
                                  std::get<UnboundHandler>(std::move(handler)), options, around});
    return;
  }
  PrefixRule& rule = store_->rules().at(*pattern);
  auto route = std::make_unique<Route>(
      Route{"fallback", std::move(*pattern), std::get<Handler>(std::move(handler)), options});
  route->middleware = around.middleware;
  route->slot = store_->slots().acquire();
  rule.fallback = std::move(route);
}

void Router::mount(std::string_view prefix, Router&& inner) {
  mount(prefix, surroundings_, inner);
}

void Router::mount(std::string_view prefix, Surroundings around, Router& inner) {
  assert(!inner.updater_->in_use() && !inner.bound_by_app_ && "a served router is not mounted");
  check_prefix(prefix);
  errors_.append(std::exchange(inner.errors_, {}));
  if (!inner.id_header_.empty() && inner.id_header_ != id_header_) {
    add_error("mount", prefix, "trust_id_header() is called on the router that is served");
  }
  for (Middleware& each : std::exchange(inner.middleware_, {}))
    around.middleware.push_back(std::make_shared<const Middleware>(std::move(each)));
  inner.store_->table().set_middleware({});
  const auto below = [prefix](std::string_view path) { return path_below(prefix, path); };
  for (PrefixRule& each : inner.store_->rules().all()) {
    std::string path(prefix);
    for (const std::string& segment : each.prefix) path.append("/").append(encode_segment(segment));
    if (each.render_error) set_renderer(path, std::move(each.render_error));
    if (each.fallback == nullptr) continue;
    Route& fallback = *each.fallback;
    set_fallback(path, std::move(fallback.handler), fallback.options,
                 around.enclosing({std::move(fallback.middleware), {}}));
  }
  for (UnboundRoute& each : std::exchange(inner.unbound_fallbacks_, {})) {
    set_fallback(below(each.pattern.text()), std::move(each.handler), each.options,
                 around.enclosing(each.around));
  }
  for (const auto& each : inner.store_->extract_all()) {
    register_route(each->method, below(each->pattern.text()), std::move(each->handler),
                   each->options, around.enclosing({std::move(each->middleware), {}}));
  }
  for (UnboundRoute& each : std::exchange(inner.unbound_, {})) {
    register_route(each.method, below(each.pattern.text()), std::move(each.handler), each.options,
                   around.enclosing(each.around));
  }
}

Result<> Router::check() const {
  if (!errors_.empty()) return fail(Errc::conflict);
  const bool waits = !unbound_.empty() && !bound_by_app_;
  if (waits || !unbound_fallbacks_.empty()) return fail(Errc::bad_configuration);
  return {};
}

void Router::log_errors(loop::PlatformLog& log) const {
  // relaxed: no other data depends on it.
  if (errors_logged_.exchange(true, std::memory_order_relaxed)) return;
  const std::string all = error_text();
  std::string_view left = all;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    log.log("weir: " + std::string(left.substr(0, end)));
    left.remove_prefix(end + 1);
  }
}

}  // namespace weir::http
