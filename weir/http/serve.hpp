// The HTTP server: what a runtime runs on each core.
#pragma once

#include "weir/http/limits.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

/// Serves HTTP/1.1 on `endpoint` with the routes of `router` until its loop drains or it is
/// cancelled, each connection as a child of `scope`. For Runtime::run_on_each_core(): every core
/// listens for itself. `router` is shared by all cores and outlives them. Returns when no new
/// connection can come; the scope then waits for those that are left.
/// Errors: those of tcp::listen(); Errc::bad_configuration when the router has conflicts.
/// Cancel: closes the listener at once; connections are cancelled with the scope.
Task<Result<>> serve(Scope& scope, const Router& router, Endpoint endpoint);
Task<Result<>> serve_with(Scope& scope, const Router& router, Endpoint endpoint, Limits limits);
/// The same for who wants to see the server's counters: `server` belongs to the scope's loop and
/// outlives the task.
Task<Result<>> serve_on(Scope& scope, ServerCore& server, Endpoint endpoint);
/// Accepts from `listener` until that is closed, each connection as a child of `connections`, which
/// ends before `server` does. Errors: those of Listener::accept().
/// Cancel: closes the listener at once, without the connections.
Task<Result<>> accept_connections(Scope& connections, ServerCore& server, tcp::Listener listener);

}  // namespace weir::http
