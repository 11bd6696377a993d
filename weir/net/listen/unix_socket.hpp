// Unix sockets, which are streams between programs of one machine, named by a path.
#pragma once

#include <string>

#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"

namespace weir::unix_socket {

using Stream = tcp::Stream;
using Listener = tcp::Listener;

/// Listens as tcp::listen() does, on a path or on a name that begins with '@' in Linux' abstract
/// namespace. The loops of one runtime share the socket. The last loop that closes it removes the
/// path. The call connects to a path in use a few times within about a second, to find out if
/// another program listens there.
/// Errors: Errc::bad_input for a name that is empty or too long, EADDRINUSE if another program or
/// runtime listens, otherwise as tcp::listen().
/// Cancel: stops waiting for an address in use.
Task<Result<Listener>> listen(std::string name);

/// Connects as tcp::connect() does, to a path or to a name in the abstract namespace.
/// Errors: Errc::bad_input for a name that is empty or too long, otherwise as tcp::connect().
/// Cancel: aborts the attempt.
Task<Result<Stream>> connect(std::string name, IoOptions options = {});

}  // namespace weir::unix_socket
