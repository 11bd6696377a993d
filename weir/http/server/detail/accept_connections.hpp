// Accepting connections for a server whose state the caller owns.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Checks the routes of `server`, loads its TLS, and listens. If `through_drain` is true, the drain
/// of the loop does not close the listener; see tcp::listen_through_drain().
/// Errors: Errc::conflict if Router::check() fails; those of tls::Server::load(), which the log
/// explains; those of tcp::listen().
/// Cancel: listens not.
/// Threads: the loop's, which is also that of `server`.
/// Lifetime: `server` outlives the task.
Task<Result<tcp::Listener>> open_listener(ServerState& server, Endpoint endpoint,
                                          bool through_drain = false);

/// Listens on `endpoint` and serves its connections until `scope`'s loop drains or the task is
/// cancelled. The task completes when its last connection has ended.
/// Errors: those of open_listener(), Errc::closed after a drain.
/// Cancel: closes the listener immediately and cancels the connections.
/// Threads: the loop's, which is also that of `server`.
/// Lifetime: `server` outlives the task.
Task<Result<>> listen_and_serve(Scope& scope, ServerState& server, Endpoint endpoint);

/// Accepts connections from `listener` until it is closed, and watches the files of the server's
/// TLS meanwhile. Each connection is a child of `connections`.
/// Errors: those of Listener::accept().
/// Cancel: closes the listener immediately, but not the connections.
/// Threads: the loop's, which is also that of `server`.
/// Lifetime: `server` outlives `connections`.
Task<Result<>> accept_connections(Scope& connections, ServerState& server, tcp::Listener listener);

}  // namespace weir::http
