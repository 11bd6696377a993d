#include "weir/http/serve.hpp"

#include <new>
#include <string>
#include <utility>

#include "weir/http/h1/connection.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

// A flood of connections lets others have their turn after so many; among them those that have been
// turned away and have left: more than are accepted in a row may be on their way out at a time.
constexpr unsigned accepts_in_a_row = 16;
static_assert(accepts_in_a_row < ServerCore::turning_away_max);

/// Closes it where there is no memory to serve it: the others are served on.
void begin_connection(Scope& connections, ServerCore& server, tcp::Stream stream) noexcept {
  try {
    if (auto place = server.admit()) {
      connections.spawn(serve_connection(std::move(*place), std::move(stream)));
    } else {
      connections.spawn(turn_away(server, std::move(stream)));
    }
  } catch (const std::bad_alloc&) {
    connections.loop().count_dropped_connection();
  }
}

/// That there is no memory to say what was done does not make it fail.
void log_summary(Loop& loop, const ServerCore& server) noexcept {
  try {
    loop.host().log("weir: core " + std::to_string(loop.core()) + ": " + server.summary());
  } catch (const std::bad_alloc&) {
    loop.host().log("weir: a core has served, and there is no memory to say what");
  }
}

}  // namespace

Task<Result<>> accept_connections(Scope& connections, ServerCore& server, tcp::Listener given) {
  // Closed when this returns, and not when its connections have ended, which may take long: who
  // comes then is refused instead of waiting in vain, and another process may have the port.
  tcp::Listener listener = std::move(given);
  for (unsigned accepted = 0; !connections.cancelled(); ++accepted) {
    if (accepted % accepts_in_a_row == accepts_in_a_row - 1) {
      static_cast<void>(co_await sleep(Duration::zero()));
    }
    auto stream = co_await listener.accept();
    if (!stream) co_return fail(stream.error());
    begin_connection(connections, server, std::move(*stream));
  }
  co_return fail(Errc::cancelled);
}

Task<Result<>> serve(Scope& scope, const Router& router, Endpoint endpoint) {
  return serve_with(scope, router, endpoint, Limits());
}

Task<Result<>> serve_with(Scope& scope, const Router& router, Endpoint endpoint, Limits limits) {
  ServerCore server(scope.loop(), router, limits);
  auto served = co_await serve_on(scope, server, endpoint);
  log_summary(scope.loop(), server);
  co_return served;
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
