// Unix sockets: streams between programs of one machine, named by a path.
#pragma once

#include <string>

#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"

namespace weir::unix_socket {

using Stream = tcp::Stream;
using Listener = tcp::Listener;

/// As tcp::listen(), on a path, or on a name in Linux' abstract namespace that begins with '@'.
/// The loops of one runtime share the socket; when the last closes it, the path is removed.
/// Errors: Errc::bad_input for a name that is empty or too long, EADDRINUSE where another program
/// or runtime listens; to see whether it does, it is connected to a few times within a second.
/// Cancel: it is not waited any longer for an address that somebody else has.
Task<Result<Listener>> listen(std::string name);

/// As tcp::connect().
/// Cancel: gives the attempt up.
Task<Result<Stream>> connect(std::string name);

}  // namespace weir::unix_socket
