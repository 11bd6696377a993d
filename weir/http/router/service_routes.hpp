// The routes of one owner, registered by it on every core and removed with it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/router/route_methods.hpp"

namespace weir::http {

/// A service takes ServiceRoutes& to answer requests:
///
///     class Greeter {
///      public:
///       Greeter(http::ServiceRoutes& routes, const Store& store) : store_(store) {
///         routes.get("/hello/{name}", [this](std::string_view name) { return greet(name); });
///       }
///
/// The routes are served from the moment when the service has started until it stops. Before the
/// app calls stop(), new requests no longer reach the service and requests in flight have ended.
/// Each instance of a per-core service registers the same routes and answers on its core. A core
/// without an instance answers 503 with Retry-After. A shared service answers on every core, so
/// every core calls its handlers. Middleware, and routes without an owner, are added to the Router.
///
/// App::mount() selects the router that serves the routes. App::replace() describes their
/// hand-over.
///
/// A service registers routes in its constructor, its factory or start(), not later (asserted). A
/// handler is destroyed on its service's core, after the service.
///
/// Threads: the service's core.
/// Lifetime: that of the service.
class ServiceRoutes : public RouteMethods<ServiceRoutes, LivePattern> {
 public:
  ServiceRoutes(const ServiceRoutes&) = delete;
  ServiceRoutes& operator=(const ServiceRoutes&) = delete;

  /// Registers a route for the method with this name on the wire. get(), post() and the other
  /// functions of RouteMethods do so for the usual methods.
  /// Errors: collected; the service cannot start then. They are a PatternError, a second route of
  /// the service for the same requests, and a route that the router or another owner already has.
  template <class F>
  void add(std::string_view method, std::type_identity_t<LivePattern<F>> pattern, F handler,
           RouteOptions options = {}) {
    add_in({}, method, pattern.text(), pattern.get(), Handler::of(std::move(handler)), options);
  }
  /// Returns a group of routes with a prefix and middleware; see Router::group(). Its handlers may
  /// take the values of a `group<T>()`. They use the services of the owner's constructor.
  /// Lifetime: that of this object.
  template <class... Values, class... M>
  LiveGroup<ServiceRoutes&> group(std::string_view prefix, M... middleware) {
    return LiveGroup<ServiceRoutes&>(*this).template group<Values...>(prefix,
                                                                      std::move(middleware)...);
  }
  /// Registers a route of a router whose handler takes these services, for an App.
  void add_bound(const UnboundRoute& route, std::span<void* const> services) {
    add_in(route.around, route.method, route.pattern.text(), route.pattern, route.bind(services),
           route.options);
  }

 protected:
  /// A route, and a key that is equal for all routes of its method and shape.
  struct Registered {
    std::unique_ptr<Route> route;
    std::string key;
  };
  ServiceRoutes() = default;
  ~ServiceRoutes() = default;

  const std::vector<Registered>& registered() const noexcept { return registered_; }
  /// Returns the errors of the registered routes; empty if there are none.
  const std::string& errors() const noexcept { return errors_; }
  /// Ends the registration; a later registration fails an assertion.
  void close() noexcept { closed_ = true; }

 private:
  friend class LiveGroup<ServiceRoutes&>;
  void add_in(const Surroundings& around, std::string_view method, std::string_view text,
              Result<Pattern> pattern, AnyHandler handler, const RouteOptions& options);

  std::vector<Registered> registered_;
  std::string errors_;
  bool closed_ = false;
};

}  // namespace weir::http
