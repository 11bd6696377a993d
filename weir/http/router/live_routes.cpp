#include "weir/http/router/live_routes.hpp"

#include "weir/http/router/detail/route_update.hpp"

namespace weir::http {
namespace {

/// Waits for a change that gives nothing but its end.
Task<Result<>> finished(RouteChange& change) {
  auto done = co_await change;
  if (!done) co_return fail(done.error());
  co_return {};
}

}  // namespace

Task<Result<RouteId>> LiveRoutes::refuse(std::error_code error) {
  co_return fail(error);
}

Task<Result<RouteId>> LiveRoutes::add_route(RoutePublisher& publisher,
                                            std::unique_ptr<Route> route) {
  RouteChange change(publisher, std::move(route));
  co_return co_await change;
}

Task<Result<>> LiveRoutes::replace_handler(RoutePublisher& publisher, RouteId id, Handler handler,
                                           HandlerShape shape,
                                           std::optional<RouteOptions> options) {
  RouteChange change(publisher, id, Replacement{std::move(handler), shape, options});
  co_return co_await finished(change);
}

Task<Result<>> LiveRoutes::remove_route(RoutePublisher& publisher, RouteId id) {
  RouteChange change(publisher, id);
  co_return co_await finished(change);
}

}  // namespace weir::http
