// Routes of a service that has left, for tests of requests that wait for its replacement.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/router/detail/route_update.hpp"
#include "weir/http/router/router.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/run.hpp"

namespace weir::http {

/// Routes of a service that has left. Their requests wait for its replacement, at most four
/// seconds.
class ReplacedRoutes {
 public:
  /// Returns the id of the route that waits for the replacement, which has the options.
  template <class F>
  RouteId add(Router& router, Loop& loop, std::string_view method, std::string_view text, F handler,
              RouteOptions options = {}) {
    const Pattern pattern = Pattern::parse(text).value();
    Loop* const only = &loop;
    auto core_handlers =
        std::make_shared<CoreHandlers>(std::span(&only, 1), std::chrono::seconds(4));
    core_handlers->on(loop)->remove(/*replacement_expected=*/true);
    auto published = std::make_unique<Route>(
        Route{std::string(method), pattern,
              Handler::of([] { return Response(Status::service_unavailable); }), RouteOptions()});
    published->core_handlers = core_handlers;
    const auto id = run(loop, publish(router.updater(), std::move(published)));
    Replacement& replacement = replacements_.emplace_back(Replacement{
        std::move(core_handlers),
        Route{std::string(method), pattern, Handler::of(std::move(handler)), std::move(options)}});
    replacement.route.owner_in_flight = &in_flight_;
    return id.value();
  }
  /// Makes the replacement answer. It allocates nothing.
  void replace(Loop& loop) {
    for (Replacement& each : replacements_) each.core_handlers->on(loop)->install(each.route);
  }
  /// Returns true if no request of the replacement is in flight.
  bool idle(Loop& loop) { return in_flight_.on(loop).requests.empty(); }

 private:
  struct Replacement {
    std::shared_ptr<CoreHandlers> core_handlers;
    Route route;
  };
  static Task<Result<RouteId>> publish(RouteUpdater& updater, std::unique_ptr<Route> route) {
    RouteUpdate update(updater, std::move(route));
    co_return co_await update;
  }

  OwnerInFlightPerCore in_flight_{"Replacement", 1};
  std::deque<Replacement> replacements_;
};

}  // namespace weir::http
