// The router: which handler answers which method and path.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/prefix_rules.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/matching/detail/service_refs.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/route_methods.hpp"

namespace weir::loop {
class PlatformLog;
}  // namespace weir::loop

namespace weir::http {

class RouteGroup;
class RouteUpdater;

/// A Router holds routes and the middleware around them.
///
/// The compiler checks a pattern literal against the handler's signature. Pattern documents the
/// grammar, Signature the parameters and results of a handler. Pattern::parse() makes a pattern at
/// run time, and adding its route returns a Result.
///
/// The router decodes a path and compares it segment by segment. A literal comes before a param
/// with a regex (in the order of registration), then a plain param, then `{name...}`. If the
/// preferred match leads nowhere, the router falls back to the next one. GET's handler answers
/// HEAD unless the path has a HEAD route. The router itself answers 404, 405 with Allow, and
/// OPTIONS. A route may have any method, and a fallback gets them all. A method that no route has
/// is answered with 405 if the path has routes, and with 501 otherwise (RFC 9110 §15.6.2).
///
/// A handler may take services by reference. The App that serves the router gives them to it; see
/// serve_http(). Without an App, bind() does so. check() fails if neither has happened.
///
/// A program whose parts make routers of their own mounts them in one; see mount().
///
/// The program changes the routes of a served router through LiveRoutes only. While the router is
/// served, the program calls no function of this class.
///
/// Threads: one thread adds routes and middleware before the router is served (asserted); const
/// members on any thread.
/// Lifetime: outlives the servers that use it. It may be moved before a server, a group or a
/// LiveRoutes refers to it, so that a function can return it.
class Router : public RouteMethods<Router> {
 public:
  Router();
  ~Router();
  Router(Router&& other) noexcept;
  Router& operator=(Router&&) = delete;

  /// Adds a route for the method with this name on the wire.
  /// Returns: the id of the route; RouteId{RouteId::none} if it could not be added, or if its
  /// handler takes services.
  /// Errors: collected for check(). A second route for the same requests, a regex that RE2 rejects,
  /// CONNECT, a method that is not a token, more than 54 unusual methods.
  template <class F>
  RouteId add(std::string_view method, std::type_identity_t<PatternFor<F>> pattern, F handler,
              RouteOptions options = {}) {
    return register_route(method, pattern.text(), any_handler(std::move(handler)), options,
                          surroundings_);
  }

  /// Adds a route with a pattern that was made at run time. check() does not report its errors.
  /// Errors: a PatternError, Errc::conflict for a second route for the same requests,
  /// Errc::bad_input, Errc::limit_reached.
  template <class F>
  Result<RouteId> add(std::string_view method, Pattern pattern, F handler,
                      RouteOptions options = {}) {
    const PatternError error = check_shapes(pattern.shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return add_route(method, std::move(pattern), any_handler(std::move(handler)), options,
                     surroundings_);
  }

  /// Returns a group of routes whose paths begin with `prefix`, such as "/api", with middleware of
  /// its own around them. The first middleware is the outermost one, inside of the router's. An
  /// empty prefix groups routes of any paths: `group("", require_login).get("/me", me)`.
  /// `group<User>("/api", require_login)` says that this middleware calls Request::set<User>().
  /// The handlers of the group then take that value as `const User&`. A request for which no
  /// middleware has set it is answered with 500 and logged.
  /// Errors: collected for check(): a prefix that has path parameters or ends with '/'. A handler
  /// that takes a User by value, since that would be the body of the client.
  /// Lifetime: the router outlives the group. The routes stay when the group is destroyed.
  template <class... Values, class... M>
  RouteGroup group(std::string_view prefix, M... middleware);

  /// Moves the routes of `inner` into this router, with `prefix` before their paths:
  /// `router.mount("/admin", admin_routes(store))`. The middleware of `inner` stays around them
  /// and around its fallback. The fallback and the form of errors apply below the prefix. Handlers
  /// of `inner` that take references get values of a `group<T>()` of this router, and services as
  /// the handlers of this router do.
  /// Errors: collected for check(): those of group() and add(), and those of `inner`.
  void mount(std::string_view prefix, Router&& inner);

  /// Answers the requests below no group's fallback that would get 404; see RouteGroup::fallback().
  template <class F>
  void fallback(F handler, RouteOptions options = {});

  /// Puts `Task<Response> middleware(Request&, Next)`, or a MiddlewareFilter, around all responses
  /// of this router, including its own such as 404. The first middleware added is the outermost.
  /// `use<User>(...)` says that it sets values, for the routes that are added later; see group().
  template <class... Values, class F>
  void use(F middleware) {
    (surroundings_.values.push_back(&inject::type<Values>), ...);
    add_middleware(Middleware::of(std::move(middleware)));
  }

  /// Sets the form of all errors: `Response render(const Problem&)`. A group may have a form of its
  /// own; see RouteGroup::render_errors(). The server calls it for each response for which
  /// needs_error_page() is true, and sends the returned body and media type. It does so for errors
  /// of the router, the server, middleware and handlers. Without this function, and if `render`
  /// throws or streams, the client gets the problem_document(). All cores share `render`, so its
  /// operator() is const.
  template <class F>
  void render_errors(F render) {
    set_renderer({}, renderer_of(std::move(render)));
  }
  /// Returns the function that render_errors() set for a raw path; empty if there is none.
  const ErrorRenderer& error_renderer(std::string_view path) const {
    return std::as_const(*store_).rules().renderer(path);
  }

  /// Trusts this request header, for example "X-Request-Id" or "traceparent", for the ids of
  /// requests. A request without a value that is_request_id() accepts gets an id from the server.
  /// It is meant for servers behind a proxy that sets the header; otherwise clients choose their
  /// ids in the logs. The program calls it before the router is served. See Request::id().
  void trust_id_header(std::string_view name) { id_header_ = name; }
  /// Returns the name of the trusted header; empty if there is none.
  std::string_view id_header() const noexcept { return id_header_; }

  /// Gives services to the handlers that take them, without an App: `router.bind(store, clock)`.
  /// All cores use these services. A T& gets the first service that is a T or derives from T.
  /// Routes that are added later need another call. Errors: collected for check(): a handler that
  /// takes another service. Lifetime: the services outlive the router.
  template <class... S>
  void bind(S&... services) {
    bind_services(ServiceRefs(services...));
  }

  /// Returns Errc::conflict if any route could not be added as it was written, or
  /// Errc::bad_configuration if a handler takes services and has none. A server does not start
  /// then.
  Result<> check() const;
  /// Returns the errors of the routes, one line each; empty if there are none.
  std::string error_text() const;
  /// Writes the errors to the log, one line each. Only the first call does that, because each core
  /// that serves the routes calls this.
  /// Threads: any.
  void log_errors(loop::PlatformLog& log) const;

  /// Finds the route, or the router's own response, for the request with this head. The caller
  /// reuses `match` for many requests, without allocation.
  void match(const RequestHead& head, RouteMatch& match) const {
    store_->table().match(head, match);
  }

  std::size_t size() const noexcept { return store_->size(); }

  /// Returns the routes whose handlers wait for their services.
  const std::vector<UnboundRoute>& unbound_routes() const noexcept { return unbound_; }
  /// Records that an App gives services to these handlers.
  void set_bound_by_app() noexcept { bound_by_app_ = true; }

  /// Returns the updater that publishes the routes to servers, and that LiveRoutes uses.
  RouteUpdater& updater() const noexcept { return *updater_; }

 private:
  friend class RouteGroup;
  RouteId register_route(std::string_view method, std::string_view pattern, AnyHandler handler,
                         const RouteOptions& options, const Surroundings& around);
  Result<RouteId> add_route(std::string_view method, Pattern pattern, AnyHandler handler,
                            const RouteOptions& options, const Surroundings& around,
                            std::string* why = nullptr);
  template <class F>
  static ErrorRenderer renderer_of(F render) {
    static_assert(std::is_invocable_r_v<Response, const F&, const Problem&>,
                  "render_errors() takes a Response(const http::Problem&) with a const operator()");
    return [render = std::move(render)](const Problem& problem) -> Response {
      return std::as_const(render)(problem);
    };
  }
  void bind_services(const ServiceRefs& services);
  void set_renderer(std::string_view prefix, ErrorRenderer render);
  void set_fallback(std::string_view prefix, AnyHandler handler, const RouteOptions& options,
                    const Surroundings& around);
  void mount(std::string_view prefix, Surroundings around, Router& inner);
  void check_prefix(std::string_view prefix);
  void add_error(std::string_view what, std::string_view where, std::string_view why);
  void add_middleware(Middleware middleware);

  std::unique_ptr<RouteStore> store_;
  std::vector<Middleware> middleware_;
  Surroundings surroundings_;          // of routes without a group; its middleware is empty
  std::vector<UnboundRoute> unbound_;  // their handlers wait for services
  /// Fallbacks that take what no middleware sets; a router in which this one is mounted may do so.
  std::vector<UnboundRoute> unbound_fallbacks_;
  bool bound_by_app_ = false;
  std::string id_header_;
  std::string errors_;
  mutable std::atomic<bool> errors_logged_{false};
  std::unique_ptr<RouteUpdater> updater_;
};

/// A RouteGroup adds routes whose paths begin with its prefix, with its middleware around them. A
/// guard of a group covers all its routes, however a client writes their paths. The route "/" of a
/// group is the prefix itself.
/// Threads: that of the router.
/// Lifetime: the router outlives the group.
class RouteGroup : public GroupMethods<RouteGroup> {
 public:
  /// Adds a route; see Router::add().
  template <class F>
  RouteId add(std::string_view method, std::type_identity_t<PatternFor<F>> pattern, F handler,
              RouteOptions options = {}) {
    return router_.register_route(method, below(pattern.text()), any_handler(std::move(handler)),
                                  options, around());
  }
  /// Adds a route with a pattern that was made at run time.
  /// Errors: those of Router::add() for such a pattern.
  template <class F>
  Result<RouteId> add(std::string_view method, Pattern pattern, F handler,
                      RouteOptions options = {}) {
    auto whole = Pattern::parse(below(pattern.text()));
    if (!whole) return fail(whole.error());
    const PatternError error = check_shapes(whole->shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return router_.add_route(method, std::move(*whole), any_handler(std::move(handler)), options,
                             around());
  }
  /// Answers the requests below the prefix that would get 404, of any method:
  /// `group.fallback([] { return http::html("<p>Nothing here.</p>", Status::not_found); })`. The
  /// handler is one like others, without path parameters and services. The group's middleware is
  /// around it, so it may take the values of a `group<T>()`. 405 and the answer to OPTIONS stay the
  /// router's own. A later call replaces the fallback.
  template <class F>
  void fallback(F handler, RouteOptions options = {}) {
    static_assert(Signature<F>::shape.params == 0, "a fallback takes no path parameters");
    router_.set_fallback(prefix(), any_handler(std::move(handler)), options, around());
  }
  /// Sets the form of the errors below the prefix, including 404, 405 and 500; see
  /// Router::render_errors().
  template <class F>
  void render_errors(F render) {
    router_.set_renderer(prefix(), Router::renderer_of(std::move(render)));
  }
  /// Moves the routes of `inner` into this group; see Router::mount().
  void mount(std::string_view prefix, Router&& inner) {
    router_.mount(GroupMethods::prefix() + std::string(prefix), around(), inner);
  }
  /// Returns a group inside of this one; its middleware is inside of this group's.
  template <class... Values, class... M>
  RouteGroup group(std::string_view prefix, M... middleware) const {
    router_.check_prefix(prefix);
    return GroupMethods::group<Values...>(prefix, std::move(middleware)...);
  }

 private:
  friend class Router;
  RouteGroup(Router& router, const Surroundings& around)
      : GroupMethods({}, around), router_(router) {}

  Router& router_;
};

template <class F>
void Router::fallback(F handler, RouteOptions options) {
  RouteGroup(*this, surroundings_).fallback(std::move(handler), options);
}

template <class... Values, class... M>
RouteGroup Router::group(std::string_view prefix, M... middleware) {
  return RouteGroup(*this, surroundings_).group<Values...>(prefix, std::move(middleware)...);
}

}  // namespace weir::http
