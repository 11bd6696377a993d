// One HTTP/1.1 connection from its first byte to its last.
#pragma once

#include "weir/http/h1/exchange.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Serves the connection until the peer leaves, breaks a rule, or the server drains. Nothing that
/// the peer does is an error of the task. Its place is free again when the stream is closed, or
/// left to what has been answered last, of which a core keeps a few. Cancel: handlers are cancelled
/// and waited for; the connection closes.
Task<> serve_connection(ServerCore::Place place, tcp::Stream stream);

/// Answers 503 to a connection beyond the limit, and closes it politely.
/// Cancel: closes at once.
Task<> turn_away(ServerCore& server, tcp::Stream stream);

}  // namespace weir::http
