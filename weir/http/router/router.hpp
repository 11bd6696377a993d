// The router: which handler answers which method and path.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/detail/route_store.hpp"

namespace weir::http {

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
/// The program changes the routes of a served router through LiveRoutes only. While the router is
/// served, the program calls no function of this class.
///
/// Threads: one thread adds routes and middleware before the router is served (asserted); const
/// members on any thread.
/// Lifetime: outlives the servers that use it.
class Router {
 public:
  Router();
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  template <class F>
  RouteId get(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("GET", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId head(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("HEAD", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId post(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("POST", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId put(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("PUT", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId patch(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("PATCH", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId del(std::type_identity_t<PatternFor<F>> pattern, F handler, RouteOptions options = {}) {
    return add("DELETE", pattern, std::move(handler), options);
  }
  template <class F>
  RouteId options(std::type_identity_t<PatternFor<F>> pattern, F handler,
                  RouteOptions options = {}) {
    return add("OPTIONS", pattern, std::move(handler), options);
  }
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
  Result<RouteId> get(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("GET", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> head(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("HEAD", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> post(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("POST", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> put(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("PUT", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> patch(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("PATCH", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> del(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("DELETE", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> options(Pattern pattern, F handler, RouteOptions options = {}) {
    return add("OPTIONS", std::move(pattern), std::move(handler), options);
  }
  template <class F>
  Result<RouteId> add(std::string_view method, Pattern pattern, F handler,
                      RouteOptions options = {}) {
    const PatternError error = check_shapes(pattern.shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return try_add(method, std::move(pattern), Handler::of(std::move(handler)), options);
  }

  /// Puts `Task<Response> middleware(Request&, Next)` around all responses of this router,
  /// including its own such as 404. The first middleware added is the outermost.
  template <class F>
  void use(F middleware) {
    add_middleware(Middleware::of(std::move(middleware)));
  }

  /// Sets the form of all errors: `Response render(const Problem&)`. The server calls it for each
  /// response for which needs_error_page() is true, and sends the returned body and media type. It
  /// does so for errors of the router, the server, middleware and handlers. Without this function,
  /// and if `render` throws or streams, the client gets the problem_document(). All cores share
  /// `render`, so its operator() is const.
  template <class F>
  void render_errors(F render) {
    static_assert(std::is_invocable_r_v<Response, const F&, const Problem&>,
                  "render_errors() takes a Response(const http::Problem&) with a const operator()");
    error_renderer_ = [render = std::move(render)](const Problem& problem) -> Response {
      return std::as_const(render)(problem);
    };
  }
  /// Returns the function that render_errors() set; empty if there is none.
  const std::function<Response(const Problem&)>& error_renderer() const noexcept {
    return error_renderer_;
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

  /// Finds the route, or the router's own response, for the request with this head. The caller
  /// reuses `match` for many requests, without allocation.
  void match(const RequestHead& head, RouteMatch& match) const {
    store_.table().match(head, match);
  }

  std::size_t size() const noexcept { return store_.size(); }

  /// Returns the updater that publishes the routes to servers, and that LiveRoutes uses.
  RouteUpdater& updater() const noexcept { return *updater_; }

 private:
  RouteId register_route(std::string_view method, std::string_view pattern, Handler handler,
                         const RouteOptions& options);
  Result<RouteId> try_add(std::string_view method, Pattern pattern, Handler handler,
                          const RouteOptions& options, std::string* why = nullptr);
  void add_middleware(Middleware middleware);

  RouteStore store_;
  std::vector<Middleware> middleware_;
  std::function<Response(const Problem&)> error_renderer_;
  std::string id_header_;
  std::string errors_;
  std::unique_ptr<RouteUpdater> updater_;
};

}  // namespace weir::http
