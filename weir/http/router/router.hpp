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
/// OPTIONS. It answers 501 for a Method::other that no route has.
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
  /// Returns: the id of the route; RouteId{RouteId::none} if it could not be added.
  /// Errors: collected for check(). A second route for the same requests, a regex that RE2 rejects,
  /// CONNECT, a method that is not a token, more than 55 unusual methods.
  template <class F>
  RouteId add(std::string_view method, std::type_identity_t<PatternFor<F>> pattern, F handler,
              RouteOptions options = {}) {
    return register_route(method, pattern.text(), Handler::of(std::move(handler)), options);
  }

  /// Adds a route with a pattern that was made at run time. check() does not report its errors.
  /// Errors: a PatternError, Errc::conflict for a second route for the same requests,
  /// Errc::bad_input, Errc::limit_reached.
  template <class F>
  Result<RouteId> add(std::string_view method, Pattern pattern, F handler,
                      RouteOptions options = {}) {
    const PatternError error = check_shapes(pattern.shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return try_add(method, std::move(pattern), Handler::of(std::move(handler)), options);
  }

  /// Returns a group of routes whose paths begin with `prefix`, such as "/api", with middleware of
  /// its own around them. The first middleware is the outermost one, inside of the router's.
  /// Errors: collected for check(): a prefix that has path parameters or ends with '/'.
  /// Lifetime: the router outlives the group. The routes stay when the group is destroyed.
  template <class... M>
  RouteGroup group(std::string_view prefix, M... middleware);

  /// Moves the routes of `inner` into this router, with `prefix` before their paths:
  /// `router.mount("/admin", admin_routes(store))`. The middleware of `inner` stays around them
  /// and around its fallback. The fallback and the form of errors apply below the prefix.
  /// Errors: collected for check(): those of group() and add(), and those of `inner`.
  void mount(std::string_view prefix, Router&& inner);

  /// Answers the requests below no group's fallback that would get 404; see RouteGroup::fallback().
  template <class F>
  void fallback(F handler, RouteOptions options = {});

  /// Puts `Task<Response> middleware(Request&, Next)` around all responses of this router,
  /// including its own such as 404. The first middleware added is the outermost.
  template <class F>
  void use(F middleware) {
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

  /// Returns Errc::conflict if any route could not be added as it was written. A server does not
  /// start then.
  Result<> check() const;
  /// Returns the errors of the routes, one line each; empty if there are none.
  const std::string& error_text() const noexcept { return errors_; }
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

  /// Returns the updater that publishes the routes to servers, and that LiveRoutes uses.
  RouteUpdater& updater() const noexcept { return *updater_; }

 private:
  friend class RouteGroup;
  using GroupMiddleware = std::vector<std::shared_ptr<const Middleware>>;

  RouteId register_route(std::string_view method, std::string_view pattern, Handler handler,
                         const RouteOptions& options, const GroupMiddleware& middleware = {});
  Result<RouteId> try_add(std::string_view method, Pattern pattern, Handler handler,
                          const RouteOptions& options, std::string* why = nullptr,
                          const GroupMiddleware& middleware = {});
  template <class F>
  static ErrorRenderer renderer_of(F render) {
    static_assert(std::is_invocable_r_v<Response, const F&, const Problem&>,
                  "render_errors() takes a Response(const http::Problem&) with a const operator()");
    return [render = std::move(render)](const Problem& problem) -> Response {
      return std::as_const(render)(problem);
    };
  }
  void set_renderer(std::string_view prefix, ErrorRenderer render);
  void set_fallback(std::string_view prefix, Handler handler, const RouteOptions& options,
                    const GroupMiddleware& middleware);
  void mount(std::string_view prefix, const GroupMiddleware& middleware, Router& inner);
  void check_prefix(std::string_view prefix);
  void add_error(std::string_view what, std::string_view where, std::string_view why);
  void add_middleware(Middleware middleware);

  std::unique_ptr<RouteStore> store_;
  std::vector<Middleware> middleware_;
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
class RouteGroup : public RouteMethods<RouteGroup> {
 public:
  /// Adds a route; see Router::add().
  template <class F>
  RouteId add(std::string_view method, std::type_identity_t<PatternFor<F>> pattern, F handler,
              RouteOptions options = {}) {
    const std::string_view text = pattern.text() == "/" ? std::string_view() : pattern.text();
    return router_.register_route(method, prefix_ + std::string(text),
                                  Handler::of(std::move(handler)), options, middleware_);
  }
  /// Adds a route with a pattern that was made at run time.
  /// Errors: those of Router::add() for such a pattern.
  template <class F>
  Result<RouteId> add(std::string_view method, Pattern pattern, F handler,
                      RouteOptions options = {}) {
    const std::string text = pattern.text() == "/" ? std::string() : pattern.text();
    auto whole = Pattern::parse(prefix_ + text);
    if (!whole) return fail(whole.error());
    const PatternError error = check_shapes(whole->shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return router_.try_add(method, std::move(*whole), Handler::of(std::move(handler)), options,
                           nullptr, middleware_);
  }
  /// Answers the requests below the prefix that would get 404, of any method:
  /// `group.fallback([] { return http::html("<p>Nothing here.</p>", Status::not_found); })`. The
  /// handler is one like others, without path parameters. The group's middleware is around it.
  /// 405 and the answer to OPTIONS stay the router's own. A later call replaces the fallback.
  template <class F>
  void fallback(F handler, RouteOptions options = {}) {
    static_assert(Signature<F>::shape.params == 0, "a fallback takes no path parameters");
    router_.set_fallback(prefix_, Handler::of(std::move(handler)), options, middleware_);
  }
  /// Sets the form of the errors below the prefix, including 404, 405 and 500; see
  /// Router::render_errors().
  template <class F>
  void render_errors(F render) {
    router_.set_renderer(prefix_, Router::renderer_of(std::move(render)));
  }
  /// Moves the routes of `inner` into this group; see Router::mount().
  void mount(std::string_view prefix, Router&& inner) {
    router_.mount(prefix_ + std::string(prefix), middleware_, inner);
  }
  /// Puts middleware around the routes that are added to this group from now on, inside of the
  /// middleware that it has.
  template <class F>
  void use(F middleware) {
    middleware_.push_back(
        std::make_shared<const Middleware>(Middleware::of(std::move(middleware))));
  }
  /// Returns a group inside of this one; its middleware is inside of this group's.
  template <class... M>
  RouteGroup group(std::string_view prefix, M... middleware) {
    router_.check_prefix(prefix);
    RouteGroup inner(router_, prefix_ + std::string(prefix), middleware_);
    (inner.use(std::move(middleware)), ...);
    return inner;
  }

 private:
  friend class Router;
  RouteGroup(Router& router, std::string prefix, Router::GroupMiddleware middleware)
      : router_(router), prefix_(std::move(prefix)), middleware_(std::move(middleware)) {}

  Router& router_;
  std::string prefix_;
  Router::GroupMiddleware middleware_;
};

template <class F>
void Router::fallback(F handler, RouteOptions options) {
  RouteGroup(*this, {}, {}).fallback(std::move(handler), options);
}

template <class... M>
RouteGroup Router::group(std::string_view prefix, M... middleware) {
  return RouteGroup(*this, {}, {}).group(prefix, std::move(middleware)...);
}

}  // namespace weir::http
