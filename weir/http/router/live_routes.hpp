// Adds, replaces and removes routes while their router is served.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/router/route_methods.hpp"
#include "weir/http/router/router.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The pattern of a route whose handler has type F: a literal that the compiler checks, or a
/// Pattern that was made at run time. Such a Pattern must live until the call returns.
template <class F>
class LivePattern {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval LivePattern(const Text& text) : text_(PatternFor<F>(text).text()) {}
  LivePattern(const Pattern& pattern) noexcept : text_(pattern.text()), pattern_(&pattern) {}
  std::string_view text() const noexcept { return text_; }

  /// Returns: the parsed pattern, below a prefix.
  /// Errors: a PatternError, also if the handler cannot take the pattern's params.
  Result<Pattern> get(std::string_view prefix = {}) const {
    if (prefix.empty() && pattern_ == nullptr) return Pattern::parse(text_);
    auto whole = prefix.empty() ? *pattern_ : Pattern::parse(path_below(prefix, text_));
    if (!whole) return fail(whole.error());
    const PatternError error = check_shapes(whole->shape(), Signature<F>::shape);
    if (error != PatternError::none) return fail(error);
    return whole;
  }

 private:
  std::string_view text_;
  const Pattern* pattern_ = nullptr;
};

/// A LiveGroup adds routes whose paths begin with its prefix, with its middleware around them, to a
/// LiveRoutes or a ServiceRoutes: `routes.group("/api", require_login)`. See RouteGroup.
/// Threads, Lifetime: those of `Routes`.
template <class Routes>
class LiveGroup : public GroupMethods<LiveGroup<Routes>, LivePattern> {
 public:
  /// Adds a route; see add() of `Routes`. The handler may take the values of a `group<T>()`, and
  /// no other references.
  /// Errors: Errc::bad_configuration if it takes another reference, or such a value as its body;
  /// those of `Routes`. A prefix cannot have path parameters.
  template <class F>
  auto add(std::string_view method, std::type_identity_t<LivePattern<F>> pattern, F handler,
           RouteOptions options = {}) {
    return routes_.add_in(this->around(), method, this->below(pattern.text()),
                          pattern.get(this->prefix()), any_handler(std::move(handler)), options);
  }

 private:
  friend class LiveRoutes;
  friend class ServiceRoutes;
  explicit LiveGroup(Routes routes) : routes_(routes) {}

  Routes routes_;
};

/// Changes the routes of a router while any number of cores and runtimes, or none, serve it:
///
///     auto added = co_await routes.get("/hello/{name}", hello);
///     auto removed = co_await routes.remove(*added);
///
/// Each change makes a new table of all routes. Every core takes the new table over between two
/// runnables of its loop. A request is looked up in the old table or in the new one, and finds
/// the route or 404, nothing else. Changes that are requested at the same time share one table. A
/// change takes time in proportion to the number of routes, and a turn of each loop that serves;
/// it costs requests nothing. The middleware of the router does not change; group() adds routes
/// with middleware of their own.
///
/// The task that removes a handler destroys it, on the task's core, before remove() returns. The
/// last request of that route has then ended on every core. This includes requests that wait,
/// that still stream their body, or whose response waits for a slow client.
///
/// A removal or replacement never waits for the request that makes it. It fails with
/// Errc::conflict and changes nothing inside a request of the same route, also on another core by
/// on_core(). It fails in the same way if a request of the route waits to change the caller's own
/// route, directly or through other changes. Another task must make the change then, one that does
/// not belong to the request.
///
/// Threads: any loop's; a task may be made on any thread.
/// Lifetime: a handle that may be copied; the router outlives the tasks.
class LiveRoutes : public RouteMethods<LiveRoutes, LivePattern> {
 public:
  explicit LiveRoutes(Router& router) noexcept : updater_(&router.updater()) {}

  /// Adds a route for the method with this name on the wire. get(), post() and the other functions
  /// of RouteMethods do so for the usual methods: `auto id = co_await routes.get(pattern,
  /// handler);`. The task completes when every core serves the route. Returns: the id of the route.
  /// Errors: a PatternError, Errc::conflict for a second route for the same requests,
  /// Errc::bad_input or Errc::limit_reached, as Router reports them; Errc::cancelled.
  /// Cancel: adds nothing if the task was cancelled before it began. A later cancellation has no
  /// effect.
  template <class F>
  Task<Result<RouteId>> add(std::string_view method, std::type_identity_t<LivePattern<F>> pattern,
                            F handler, RouteOptions options = {}) {
    return add_in({}, method, pattern.text(), pattern.get(), Handler::of(std::move(handler)),
                  options);
  }

  /// Returns a group of routes with a prefix and middleware; see Router::group(). A route keeps its
  /// middleware if its handler is replaced.
  template <class... Values, class... M>
  LiveGroup<LiveRoutes> group(std::string_view prefix, M... middleware) const {
    return LiveGroup<LiveRoutes>(*this).template group<Values...>(prefix, std::move(middleware)...);
  }

  /// Replaces a route's handler in one step: `co_await routes.replace(id, handler)`. No request
  /// meets 404. Requests that began earlier finish with the old handler. The task completes when
  /// all of them have ended and the old handler is destroyed, as by remove(). The route keeps its
  /// id and its position in the order of registration. It also keeps its options unless `options`
  /// has a value.
  /// Errors: a PatternError if the handler cannot take the pattern's params, Errc::not_found,
  /// Errc::conflict (see LiveRoutes), Errc::cancelled. The route is unchanged then.
  /// Cancel: changes nothing if the task was cancelled before it began. A later cancellation stops
  /// the requests of the old handler, as remove() does, and the task succeeds.
  template <class F>
  Task<Result<>> replace(RouteId id, F handler,
                         std::optional<RouteOptions> options = std::nullopt) {
    return replace_handler(*updater_, id, Handler::of(std::move(handler)), Signature<F>::shape,
                           options);
  }

  /// Removes a route: `co_await routes.remove(id)`. No new request finds it any more. The task
  /// completes when the route's last request has ended and its handler is destroyed.
  /// Errors: Errc::not_found, also if another task already removes the route; Errc::conflict (see
  /// LiveRoutes).
  /// Cancel: the route is removed nevertheless. Requests that still run are stopped as if their
  /// timeout had expired. A handler is cancelled and its client gets 503; a streamed body is cut
  /// off, or answered with 503 if it has not begun. The task completes when they have ended.
  Task<Result<>> remove(RouteId id) { return remove_route(*updater_, id); }

 private:
  friend class LiveGroup<LiveRoutes>;
  Task<Result<RouteId>> add_in(const Surroundings& around, std::string_view method,
                               std::string_view text, Result<Pattern> pattern, AnyHandler handler,
                               const RouteOptions& options) const;
  static Task<Result<RouteId>> failed(std::error_code error);
  static Task<Result<RouteId>> add_route(RouteUpdater& updater, std::unique_ptr<Route> route);
  static Task<Result<>> replace_handler(RouteUpdater& updater, RouteId id, Handler handler,
                                        HandlerShape shape, std::optional<RouteOptions> options);
  static Task<Result<>> remove_route(RouteUpdater& updater, RouteId id);

  RouteUpdater* updater_;
};

}  // namespace weir::http
