#include "weir/loop/contract/detail/accept_errors.hpp"

#include <algorithm>
#include <cerrno>

#include "weir/base/detail/shortage.hpp"

namespace weir::loop {

AcceptFailure classify_accept(int error) noexcept {
  switch (error) {
    case EAGAIN:
    case EINTR:
    case ECANCELED:  // io_uring: the request ended before a connection arrived
      return AcceptFailure::no_connection;
    // Errors of the connection; accept(2) recommends to treat them like EAGAIN by retrying.
    case ECONNABORTED:
    case ECONNRESET:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:  // a firewall rule
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ETIMEDOUT:
      return AcceptFailure::connection_gone;
    default:
      return weir::detail::is_shortage(error) ? AcceptFailure::exhausted : AcceptFailure::broken;
  }
}

Duration next_accept_pause(Duration last) noexcept {
  return std::clamp(last * 2, accept_pause_min, accept_pause_max);
}

}  // namespace weir::loop
