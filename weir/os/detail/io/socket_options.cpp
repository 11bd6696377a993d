// Socket options through typed calls of setsockopt(2) and getsockopt(2).
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/io/socket_calls.hpp"

namespace weir::os {
namespace {

Result<int> ask(int socket, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(socket, SOL_SOCKET, option, &value, &size) < 0) return fail(system_error(errno));
  return value;
}

template <class Chrono>
int count_of(Chrono time) noexcept {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, most));
}

}  // namespace

Result<> check_listening(int descriptor) {
  WEIR_TRY(const auto type, ask(descriptor, SO_TYPE));
  if (type != SOCK_STREAM) return fail(system_error(EPROTOTYPE));
  WEIR_TRY(const auto listens, ask(descriptor, SO_ACCEPTCONN));
  if (listens == 0) return fail(system_error(EINVAL));
  return {};
}

Result<std::size_t> unacked_bytes(int socket) {
  int bytes = 0;
  if (::ioctl(socket, SIOCOUTQ, &bytes) < 0) return fail(system_error(errno));
  return static_cast<std::size_t>(bytes);
}

Result<> set_no_delay(int socket, bool on) {
  return set_option(socket, IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
}

Result<> set_linger(int socket, std::optional<std::chrono::seconds> longest) {
  const linger value{longest ? 1 : 0, longest ? count_of(*longest) : 0};
  return set_option(socket, SOL_SOCKET, SO_LINGER, value);
}

}  // namespace weir::os
