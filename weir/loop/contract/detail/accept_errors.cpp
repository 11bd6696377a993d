#include "weir/loop/contract/detail/accept_errors.hpp"

#include <algorithm>
#include <cerrno>

namespace weir {

AcceptFailure classify_accept(int error) noexcept {
  switch (error) {
    case EAGAIN:
    case EINTR:
    case ECANCELED:  // io_uring's, when its request ended before anybody came
      return AcceptFailure::nobody_waits;
    // What accept(2) lists as the connection's own errors, "treat like EAGAIN by retrying".
    case ECONNABORTED:
    case ECONNRESET:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:  // a firewall's rule
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ETIMEDOUT:
      return AcceptFailure::connection_gone;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return AcceptFailure::exhausted;
    default:
      return AcceptFailure::broken;
  }
}

Duration next_accept_pause(Duration last) noexcept {
  return std::clamp(last * 2, accept_pause_min, accept_pause_max);
}

}  // namespace weir
