#include "weir/app/http_server.hpp"

#include <optional>
#include <string>
#include <utility>

#include "weir/http/route_board.hpp"
#include "weir/http/serve.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/scope.hpp"

namespace weir {

/// On one core.
class HttpServer {
 public:
  HttpServer(Scope& scope, App& app, const http::Router& router, const HttpServerOptions& options)
      : scope_(scope), board_(*app.route_board()), router_(router), options_(options) {}

  Task<Result<>> start() {
    if (auto checked = router_.check(); !checked) {
      scope_.loop().host().log("weir: " + std::string(router_.error_text()));
      co_return checked;
    }
    auto listener = co_await tcp::listen(options_.endpoint);
    if (!listener) co_return fail(listener.error());
    server_.emplace(scope_.loop(), router_, options_.limits);
    board_.server_began(scope_.loop());
    scope_.spawn(serve(std::move(*listener)));
    co_return {};
  }

  /// Nobody new is accepted, but by a loop that drains, which does that by itself.
  Task<> stop() {
    const bool drains_by_itself =
        scope_.loop().draining() && board_.serving(scope_.loop()).is_set();
    server_->drain();
    if (accepting_ && !drains_by_itself) accepting_->cancel();
    static_cast<void>(co_await ended_.wait());
  }

 private:
  Task<> serve(tcp::Listener listener) {
    accepting_.emplace(scope_.context().cancel);
    const Context accepting{&scope_.loop(), &*accepting_};
    const auto accept = [this, &accepting, &listener](Scope& connections) -> Task<> {
      // Who comes before the services have started waits in the listener's queue.
      auto waiting = in_context(accepting, as_task(board_.serving(scope_.loop()).wait()));
      if (auto serving = co_await std::move(waiting); !serving) co_return;
      auto accepted = in_context(
          accepting, http::accept_connections(connections, *server_, std::move(listener)));
      static_cast<void>(co_await std::move(accepted));
    };
    static_cast<void>(co_await with_scope(OnFailure::supervise, accept));
    accepting_.reset();
    Loop& loop = scope_.loop();
    loop.host().log("weir: core " + std::to_string(loop.core()) + ": " + server_->summary());
    board_.server_ended(loop);
    ended_.set();
  }

  Scope& scope_;
  http::RouteBoard& board_;
  const http::Router& router_;
  const HttpServerOptions& options_;
  std::optional<http::ServerCore> server_;
  std::optional<CancelSource> accepting_;
  CoreManualResetEvent ended_;
};

ServiceId serve_http(App& app, http::Router& router, const HttpServerOptions& options) {
  if (app.route_board() == nullptr) app.mount(router);
  return app.per_core(
      [options, &router](Scope& scope, App& of) { return HttpServer(scope, of, router, options); });
}

}  // namespace weir
