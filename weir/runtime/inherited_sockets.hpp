// Listening sockets that a process was started with, as systemd's socket units give them.
#pragma once

#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// A listening socket that was open before this process began. It stays open in this process, and
/// whoever gave it has it open too: a runtime that drains leaves what waits in its queue to the
/// next process that is started with it.
struct InheritedSocket {
  int descriptor;
  std::string name;   ///< for people, such as systemd's FileDescriptorName=
  Endpoint endpoint;  ///< where it listens
};

/// What LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES tell of this process (sd_listen_fds(3)), for
/// RuntimeOptions::inherited; none, where they are not set or meant for another process. For
/// main(), once, with environ(7); nothing in Weir reads the environment by itself.
/// Errors: Errc::bad_input where the variables are no manager's; EBADF, ENOTSOCK, EPROTOTYPE or
/// EINVAL where a descriptor is no stream socket that listens.
Result<std::vector<InheritedSocket>> inherited_sockets_from_environment(
    const char* const* environment);

}  // namespace weir
