// Routes that come and go while their router is served.
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
#include "weir/http/matching/route.hpp"
#include "weir/http/router/router.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The pattern of a route with a handler of type F: one that stands in the program, checked when it
/// is compiled, or a Pattern that was made at run time and lives as long as the call.
template <class F>
class LivePattern {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval LivePattern(const Text& text) : text_(PatternFor<F>(text).text()) {}
  LivePattern(const Pattern& pattern) noexcept : text_(pattern.text()), pattern_(&pattern) {}
  std::string_view text() const noexcept { return text_; }

  /// Errors: a PatternFault, also when the handler cannot take what the pattern gives.
  Result<Pattern> get() const {
    if (pattern_ == nullptr) return Pattern::parse(text_);
    const PatternFault fault = check_shapes(pattern_->shape(), Signature<F>::shape);
    if (fault != PatternFault::none) return fail(fault);
    return *pattern_;
  }

 private:
  std::string_view text_;
  const Pattern* pattern_ = nullptr;
};

/// Changes the routes of a router while it is served, by any number of cores and runtimes, or by
/// none:
///
///     auto added = co_await routes.get("/hello/{name}", hello);
///     auto removed = co_await routes.remove(*added);
///
/// Each change makes a new table of all routes, which every core takes over between two runnables
/// of its loop: a request is looked up in the old one or in the new one, and finds the route or
/// 404, nothing else. Changes that are asked for at a time make one table. A change takes time in
/// proportion to the number of routes, and a turn of each loop that serves; it costs requests
/// nothing. Middleware stays as it is.
///
/// A removed handler is destroyed by the task that removed it, on its core, before remove()
/// returns: after the last request of that route on every core has ended, those among them that
/// wait, that still stream their body or whose answer waits for a slow client.
///
/// A removal never waits for whoever asks for it. Inside a request of the route (also on another
/// core, by on_core()), or of one that waits itself to remove the route of this request, it fails
/// with Errc::conflict and changes nothing. Let somebody else do it: a task that is not the
/// request's.
///
/// Threads: any loop's; tasks may be made anywhere. Lifetime: a handle, good to copy; the router
/// outlives the tasks.
class LiveRoutes {
 public:
  explicit LiveRoutes(Router& router) noexcept : publisher_(&router.publisher()) {}

  /// `auto id = co_await routes.get(pattern, handler);`: adds a route as Router::get() does;
  /// returns when every core serves it. Errors: a PatternFault, Errc::conflict for two routes for
  /// the same, Errc::bad_input, Errc::limit_reached, as Router; Errc::cancelled.
  /// Cancel: nothing is added when it was cancelled before it began. Later it is too late.
  template <class F>
  Task<Result<RouteId>> get(std::type_identity_t<LivePattern<F>> pattern, F handler,
                            RouteOptions options = {}) {
    return add("GET", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> head(std::type_identity_t<LivePattern<F>> pattern, F handler,
                             RouteOptions options = {}) {
    return add("HEAD", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> post(std::type_identity_t<LivePattern<F>> pattern, F handler,
                             RouteOptions options = {}) {
    return add("POST", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> put(std::type_identity_t<LivePattern<F>> pattern, F handler,
                            RouteOptions options = {}) {
    return add("PUT", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> patch(std::type_identity_t<LivePattern<F>> pattern, F handler,
                              RouteOptions options = {}) {
    return add("PATCH", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> del(std::type_identity_t<LivePattern<F>> pattern, F handler,
                            RouteOptions options = {}) {
    return add("DELETE", pattern, std::move(handler), options);
  }
  template <class F>
  Task<Result<RouteId>> options(std::type_identity_t<LivePattern<F>> pattern, F handler,
                                RouteOptions options = {}) {
    return add("OPTIONS", pattern, std::move(handler), options);
  }
  /// Any method, by its name on the wire.
  /// Cancel: as get().
  template <class F>
  Task<Result<RouteId>> add(std::string_view method, std::type_identity_t<LivePattern<F>> pattern,
                            F handler, RouteOptions options = {}) {
    auto known = pattern.get();
    if (!known) return refuse(known.error());
    return add_route(*publisher_,
                     std::make_unique<Route>(Route{std::string(method), std::move(*known),
                                                   Handler::of(std::move(handler)), options}));
  }

  /// `co_await routes.replace(id, handler)`: puts another handler in the route's place, in one
  /// step: no request meets 404. Those that began before finish with the old handler; returns when
  /// all of them have ended, and the old handler is destroyed like a removed one. The route keeps
  /// its id, its place among others and, unless new ones are given, its options.
  /// Errors: a PatternFault when the handler cannot take what the pattern gives, Errc::not_found,
  /// Errc::conflict (see above), Errc::cancelled; then nothing has changed.
  /// Cancel: nothing is changed when it was cancelled before it began. Later it asks the old
  /// handler's requests to stop, as remove() does, and succeeds.
  template <class F>
  Task<Result<>> replace(RouteId id, F handler,
                         std::optional<RouteOptions> options = std::nullopt) {
    return replace_handler(*publisher_, id, Handler::of(std::move(handler)), Signature<F>::shape,
                           options);
  }

  /// `co_await routes.remove(id)`: from now on there is no such route; returns when its last
  /// request has ended and its handler is destroyed.
  /// Errors: Errc::not_found, also when somebody else removes it already; Errc::conflict (see
  /// above).
  /// Cancel: the route goes all the same. Requests that still run are asked to stop as if their
  /// deadline had passed: a handler is cancelled and answered for with 503, a streamed body is cut
  /// off. Returns when they have ended.
  Task<Result<>> remove(RouteId id) { return remove_route(*publisher_, id); }

 private:
  static Task<Result<RouteId>> refuse(std::error_code error);
  static Task<Result<RouteId>> add_route(RoutePublisher& publisher, std::unique_ptr<Route> route);
  static Task<Result<>> replace_handler(RoutePublisher& publisher, RouteId id, Handler handler,
                                        HandlerShape shape, std::optional<RouteOptions> options);
  static Task<Result<>> remove_route(RoutePublisher& publisher, RouteId id);

  RoutePublisher* publisher_;
};

}  // namespace weir::http
