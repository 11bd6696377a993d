#include "weir/http/serve.hpp"

#include <utility>

#include "weir/http/h1/connection.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/listener.hpp"

namespace weir::http {
namespace {

/// Accepts until the listener is closed; the connections end before this scope does.
Task<Result<>> accept_connections(Scope& connections, ServerCore& server, tcp::Listener listener) {
  for (;;) {
    auto stream = co_await listener.accept();
    if (!stream) co_return fail(stream.error());
    if (server.full()) {
      connections.spawn(turn_away(server, std::move(*stream)));
    } else {
      connections.spawn(serve_connection(server, std::move(*stream)));
    }
  }
}

}  // namespace

Task<Result<>> serve(Scope& scope, const Router& router, Endpoint endpoint) {
  return serve_with(scope, router, endpoint, Limits());
}

Task<Result<>> serve_with(Scope& scope, const Router& router, Endpoint endpoint, Limits limits) {
  ServerCore server(scope.loop(), router, limits);
  co_return co_await serve_on(scope, server, endpoint);
}

Task<Result<>> serve_on(Scope& scope, ServerCore& server, Endpoint endpoint) {
  if (auto checked = server.router().check(); !checked) {
    scope.loop().host().log("weir: " + std::string(server.router().error_text()));
    co_return fail(checked.error());
  }
  auto listener = co_await tcp::listen(endpoint);
  if (!listener) co_return fail(listener.error());
  co_return co_await with_scope(OnFailure::supervise, accept_connections, std::ref(server),
                                std::move(*listener));
}

}  // namespace weir::http
