// The functions that add routes, one for each usual method, and those of groups of routes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"
#include "weir/http/matching/detail/websocket_handler.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"

namespace weir::http {

/// The base of a class that adds routes: each function calls add() of Derived with the name of its
/// method, and returns what add() returns. A pattern is a literal, or a Pattern that was made at
/// run time if Derived takes one.
template <class Derived, template <class F> class PatternOf = PatternFor>
class RouteMethods {
 public:
  template <class F>
  auto get(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("GET", pattern, std::move(handler), limits);
  }
  template <class F>
  auto get(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("GET", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto head(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("HEAD", pattern, std::move(handler), limits);
  }
  template <class F>
  auto head(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("HEAD", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto post(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("POST", pattern, std::move(handler), limits);
  }
  template <class F>
  auto post(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("POST", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto put(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PUT", pattern, std::move(handler), limits);
  }
  template <class F>
  auto put(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PUT", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto patch(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PATCH", pattern, std::move(handler), limits);
  }
  template <class F>
  auto patch(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PATCH", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto del(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("DELETE", pattern, std::move(handler), limits);
  }
  template <class F>
  auto del(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("DELETE", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto query(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("QUERY", pattern, std::move(handler), limits);
  }
  template <class F>
  auto query(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("QUERY", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto options(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("OPTIONS", pattern, std::move(handler), limits);
  }
  template <class F>
  auto options(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("OPTIONS", std::move(pattern), std::move(handler), limits);
  }

  /// Adds a WebSocket: `router.websocket("/chat/{room}", chat)`. The handler is a coroutine that
  /// takes a WebSocket& first, and then arguments like any handler, except for a Request& and views
  /// into the request. It returns nothing or a Result<>, when the connection may close. The
  /// middleware of the route runs before the handshake, and its values are copied.
  template <class F>
  auto websocket(std::type_identity_t<PatternOf<detail::WebSocketHandler<F>>> pattern, F handler,
                 WebSocketOptions options = {}) {
    RouteOptions of_route;
    of_route.websocket = std::make_shared<const WebSocketOptions>(std::move(options));
    detail::WebSocketHandler<F> opening(std::move(handler), of_route.websocket);
    return derived().add("GET", pattern, std::move(opening), std::move(of_route));
  }

 private:
  Derived& derived() noexcept { return static_cast<Derived&>(*this); }
};

/// The base of a class that adds routes with a prefix before their paths and with middleware around
/// them. The route "/" of a group is the prefix itself.
template <class Derived, template <class F> class PatternOf = PatternFor>
class GroupMethods : public RouteMethods<Derived, PatternOf> {
 public:
  /// Puts middleware around the routes that are added to this group from now on, inside of the
  /// middleware that it has. `Values` are the types that it sets; see Router::group().
  template <class... Values, class F>
  void use(F middleware) {
    (around_.values.push_back(&inject::type<Values>), ...);
    around_.middleware.push_back(
        std::make_shared<const Middleware>(Middleware::of(std::move(middleware))));
  }
  /// Returns a group inside of this one; its middleware is inside of this group's.
  template <class... Values, class... M>
  Derived group(std::string_view prefix, M... middleware) const {
    Derived inner = static_cast<const Derived&>(*this);
    inner.prefix_ += prefix;
    (inner.around_.values.push_back(&inject::type<Values>), ...);
    (inner.use(std::move(middleware)), ...);
    return inner;
  }

 protected:
  GroupMethods() = default;
  GroupMethods(std::string_view prefix, Surroundings around)
      : prefix_(prefix), around_(std::move(around)) {}

  const std::string& prefix() const noexcept { return prefix_; }
  const Surroundings& around() const noexcept { return around_; }
  /// Returns the path of a route of this group.
  std::string below(std::string_view path) const { return path_below(prefix_, path); }

 private:
  std::string prefix_;
  Surroundings around_;
};

}  // namespace weir::http
