#include "weir/http/server/detail/accept_connections.hpp"

#include <functional>
#include <new>
#include <string>
#include <utility>

#include "weir/http/server/detail/connection.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

// Largest number of accepts in a row, after which the other tasks of the loop run. Rejected
// connections that the peer has left end then. A row of rejections alone stays below
// rejections_max.
constexpr unsigned accepts_in_a_row = 16;
static_assert(accepts_in_a_row < OpenConnections::rejections_max);

/// Closes the connection if there is no memory to serve it; the other connections continue.
void start_connection(Scope& connections, ServerState& server, tcp::Stream stream) noexcept {
  try {
    if (auto permit = server.connections().try_acquire_permit()) {
      connections.spawn(serve_connection(std::move(*permit), std::move(stream)));
    } else {
      connections.spawn(reject_connection(server, std::move(stream)));
    }
  } catch (const std::bad_alloc&) {
    ConnectionCounters::made(connections.loop()).dropped.add();
  }
}

}  // namespace

Task<Result<>> accept_connections(Scope& connections, ServerState& server, tcp::Listener given) {
  // Close the listener when this function returns, not when its connections have ended, which may
  // take long. A late client is then refused instead of waiting in vain, and another process may
  // use the port.
  tcp::Listener listener = std::move(given);
  for (unsigned accepted = 0; !connections.cancelled(); ++accepted) {
    if (accepted % accepts_in_a_row == accepts_in_a_row - 1) {
      std::ignore = co_await sleep(Duration::zero());
    }
    WEIR_CO_TRY(auto stream, co_await listener.accept());
    start_connection(connections, server, std::move(stream));
  }
  co_return fail(Errc::cancelled);
}

Task<Result<>> listen_and_serve(Scope& scope, ServerState& server, Endpoint endpoint) {
  if (auto checked = server.router().check(); !checked) {
    server.router().log_errors(scope.loop().platform());
    co_return fail(checked.error());
  }
  WEIR_CO_TRY(auto listener, co_await tcp::listen(endpoint));
  co_return co_await with_scope(OnFailure::isolate, accept_connections, std::ref(server),
                                std::move(listener));
}

}  // namespace weir::http
