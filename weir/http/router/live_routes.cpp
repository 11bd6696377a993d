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

Task<Result<RouteId>> LiveRoutes::add_in(const Surroundings& around, std::string_view method,
                                         std::string_view, Result<Pattern> pattern,
                                         AnyHandler handler, const RouteOptions& options) const {
  if (!pattern) return failed(pattern.error());
  if (!body_error(handler, around).empty() || !bind_values(handler, around))
    return failed(make_error_code(Errc::bad_configuration));
  auto route = std::make_unique<Route>(Route{std::string(method), std::move(*pattern),
                                             std::get<Handler>(std::move(handler)), options});
  route->middleware = around.middleware;
  return add_route(*updater_, std::move(route));
}

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
