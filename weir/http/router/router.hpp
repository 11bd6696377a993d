// The router: which handler answers which method and path.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/matching/detail/route_match.hpp"

namespace weir::http {

class RoutePublisher;

/// Routes and the middleware around them.
///
/// A pattern that stands in the program is checked against the handler's signature when it is
/// compiled; see Pattern for the grammar and Signature for what a handler may take and return. One
/// that is made at run time comes from Pattern::parse(), and adding it gives a Result.
///
/// Paths are compared segment by segment, decoded. At each segment a literal goes before a capture
/// with an expression (in the order of registration), that before a plain capture, that before
/// `{name...}`; where the better one leads nowhere, the next is tried. HEAD is answered by GET's
/// handler unless it has its own. The router itself answers 404, 405 with Allow, 501 for methods
/// that no route has, and OPTIONS.
///
/// While it is served, its routes are changed through LiveRoutes only, and nothing here is called.
///
/// Threads: routes are added before it is served, by one thread (asserted); const members anywhere.
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
  /// Any method, by its name on the wire. Errors: gathered, see check(): two routes for the same,
  /// an expression that RE2 refuses, CONNECT or a method that is no token, more than 55 unusual
  /// ones.
  template <class F>
  RouteId add(std::string_view method, std::type_identity_t<PatternFor<F>> pattern, F handler,
              RouteOptions options = {}) {
    return keep(method, pattern.text(), Handler::of(std::move(handler)), options);
  }

  /// The same with patterns that were made at run time. Errors: a PatternFault, conflict for two
  /// routes for the same, bad_input, limit_reached; check() does not know of them.
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
    const PatternFault fault = check_shapes(pattern.shape(), Signature<F>::shape);
    if (fault != PatternFault::none) return fail(fault);
    return try_add(method, std::move(pattern), Handler::of(std::move(handler)), options);
  }

  /// Puts `Task<Response> middleware(Request&, Next)` around all answers of this router, its own
  /// among them; the first to be added is the outermost.
  template <class F>
  void use(F middleware) {
    add_middleware(Middleware::of(std::move(middleware)));
  }

  /// Before it is served: requests have the id that they bring in this field, "X-Request-Id" or
  /// "traceparent" for example, where it is_request_id(); else one of the server's own. For servers
  /// behind a proxy that sets the field: otherwise clients choose what the logs call them. See
  /// Request::id().
  void trust_id_field(std::string_view name) { id_field_ = name; }
  /// Empty: none.
  std::string_view id_field() const noexcept { return id_field_; }

  /// conflict if any route could not be added as it was written. A server does not start then.
  Result<> check() const;
  /// What is wrong, one line each; empty when all is well.
  const std::string& error_text() const noexcept { return errors_; }

  /// Who answers the request with this head. `match` is used again and again, without allocating.
  void match(const RequestHead& head, RouteMatch& match) const { book_.table().match(head, match); }

  std::size_t size() const noexcept { return book_.size(); }

  /// For servers, which read the routes from there, and for LiveRoutes.
  RoutePublisher& publisher() const noexcept { return *publisher_; }

 private:
  RouteId keep(std::string_view method, std::string_view pattern, Handler handler,
               const RouteOptions& options);
  Result<RouteId> try_add(std::string_view method, Pattern pattern, Handler handler,
                          const RouteOptions& options, std::string* why = nullptr);
  void add_middleware(Middleware middleware);

  RouteBook book_;
  std::vector<Middleware> middleware_;
  std::string id_field_;
  std::string errors_;
  std::unique_ptr<RoutePublisher> publisher_;
};

}  // namespace weir::http
