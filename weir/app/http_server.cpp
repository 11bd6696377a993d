// The HTTP server service of an app.
#include "weir/app/http_server.hpp"

#include <optional>
#include <string>
#include <utility>

#include "weir/http/router/detail/service_route_registry.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"

namespace weir {

/// The server of one core.
class HttpServer {
 public:
  HttpServer(Scope& scope, App& app, const http::Router& router, const http::ServeOptions& options)
      : scope_(scope), route_registry_(*app.route_registry()), router_(router), options_(options) {}

  Task<Result<>> start() {
    server_.emplace(scope_.loop(), router_, options_);
    WEIR_CO_TRY(auto listener, co_await http::open_listener(*server_, options_.endpoint));
    route_registry_.on_server_started(scope_.loop());
    scope_.spawn(serve(std::move(listener)));
    co_return {};
  }

  /// Stops accepting connections and waits until all are answered. A draining loop stops accepting
  /// on its own, after the waiting connections.
  Task<> stop() {
    const bool drains_by_itself =
        scope_.loop().draining() && route_registry_.serving_allowed(scope_.loop()).is_set();
    server_->drain();
    if (accept_cancel_ && !drains_by_itself) accept_cancel_->cancel();
    std::ignore = co_await stopped_.wait();
  }

 private:
  Task<> serve(tcp::Listener listener) {
    accept_cancel_.emplace(scope_.context().cancel);
    const Context accepting{&scope_.loop(), &*accept_cancel_};
    const auto accept = [this, &accepting, &listener](Scope& connections) -> Task<> {
      // Connections that arrive before the services have started wait in the listener's queue.
      auto waiting =
          in_context(accepting, as_task(route_registry_.serving_allowed(scope_.loop()).wait()));
      if (auto serving = co_await std::move(waiting); !serving) co_return;
      auto accepted = in_context(
          accepting, http::accept_connections(connections, *server_, std::move(listener)));
      std::ignore = co_await std::move(accepted);
    };
    std::ignore = co_await with_scope(OnFailure::isolate, accept);
    accept_cancel_.reset();
    Loop& loop = scope_.loop();
    loop.platform().log("weir: core " + std::to_string(loop.core()) + ": " +
                        server_->counters().summary());
    route_registry_.on_server_stopped(loop);
    stopped_.set();
  }

  Scope& scope_;
  http::ServiceRouteRegistry& route_registry_;
  const http::Router& router_;
  const http::ServeOptions& options_;
  std::optional<http::ServerState> server_;
  std::optional<CancelSource> accept_cancel_;
  ManualResetEvent stopped_;
};

ServiceId serve_http(App& app, http::Router& router, const http::ServeOptions& options) {
  if (app.route_registry() == nullptr) app.mount(router);
  return app.per_core(
      [options, &router](Scope& scope, App& of) { return HttpServer(scope, of, router, options); });
}

}  // namespace weir
