// Helpers of system calls on sockets, which only the sources of this floor include.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

namespace weir::os {

inline const sockaddr* as_sockaddr(const Address& address) noexcept {
  return static_cast<const sockaddr*>(address.data());
}

/// Returns true if the error says that this machine has no IPv6.
inline bool means_no_ipv6(std::error_code error) noexcept {
  return error == system_error(EAFNOSUPPORT) || error == system_error(EADDRNOTAVAIL);
}

/// Calls setsockopt(2). T is the type of the option.
/// Errors: the kernel's.
template <class T>
Result<> set_option(int socket, int level, int option, const T& value) {
  if (::setsockopt(socket, level, option, &value, sizeof value) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

}  // namespace weir::os
