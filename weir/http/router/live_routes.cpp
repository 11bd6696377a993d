#include "weir/http/router/live_routes.hpp"

#include "weir/http/router/detail/route_update.hpp"

namespace weir::http {
namespace {

/// Waits for a change that has no result except its end.
Task<Result<>> finished(RouteUpdate& change) {
  WEIR_CO_TRY(co_await change);
  co_return {};
}

}  // namespace

Task<Result<RouteId>> LiveRoutes::failed(std::error_code error) {
  co_return fail(error);
}

Task<Result<RouteId>> LiveRoutes::add_route(RouteUpdater& updater, std::unique_ptr<Route> route) {
  RouteUpdate change(updater, std::move(route));
  co_return co_await change;
}

Task<Result<>> LiveRoutes::replace_handler(RouteUpdater& updater, RouteId id, Handler handler,
                                           HandlerShape shape,
                                           std::optional<RouteOptions> options) {
  RouteUpdate change(updater, id, HandlerReplacement{std::move(handler), shape, options});
  co_return co_await finished(change);
}

Task<Result<>> LiveRoutes::remove_route(RouteUpdater& updater, RouteId id) {
  RouteUpdate change(updater, id);
  co_return co_await finished(change);
}

}  // namespace weir::http
