// Socket options: each one a typed setsockopt.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "weir/os/socket.hpp"

namespace weir::os {
namespace {

template <class T>
Result<> set(int socket, int level, int option, const T& value) {
  if (::setsockopt(socket, level, option, &value, sizeof value) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

Result<int> get(int socket, int level, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(socket, level, option, &value, &size) < 0) return fail(system_error(errno));
  return value;
}

template <class Chrono>
int count_of(Chrono time) noexcept {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, most));
}

}  // namespace

Result<std::size_t> unacknowledged(int socket) {
  int bytes = 0;
  if (::ioctl(socket, SIOCOUTQ, &bytes) < 0) return fail(system_error(errno));
  return static_cast<std::size_t>(bytes);
}

Result<> set_no_delay(int socket, bool on) {
  return set(socket, IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
}

Result<> set_quick_ack(int socket, bool on) {
  return set(socket, IPPROTO_TCP, TCP_QUICKACK, on ? 1 : 0);
}

Result<> set_keep_alive(int socket, const std::optional<KeepAlive>& settings) {
  if (!settings) return set(socket, SOL_SOCKET, SO_KEEPALIVE, 0);
  const int idle = count_of(settings->idle);
  if (auto done = set(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle); !done) return done;
  const int interval = count_of(settings->interval);
  if (auto done = set(socket, IPPROTO_TCP, TCP_KEEPINTVL, interval); !done) return done;
  if (auto done = set(socket, IPPROTO_TCP, TCP_KEEPCNT, settings->probes_max); !done) return done;
  return set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Result<> set_user_timeout(int socket, std::chrono::milliseconds longest) {
  return set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, count_of(longest));
}

Result<> set_linger(int socket, std::optional<std::chrono::seconds> longest) {
  const linger value{longest ? 1 : 0, longest ? count_of(*longest) : 0};
  return set(socket, SOL_SOCKET, SO_LINGER, value);
}

Result<> set_incoming_cpu(int socket, int cpu) {
  return set(socket, SOL_SOCKET, SO_INCOMING_CPU, cpu);
}

Result<int> incoming_cpu(int socket) {
  return get(socket, SOL_SOCKET, SO_INCOMING_CPU);
}

Result<> set_buffers(int socket, SocketBuffers bytes) {
  if (bytes.send > 0) {
    if (auto done = set(socket, SOL_SOCKET, SO_SNDBUF, bytes.send); !done) return done;
  }
  if (bytes.receive > 0) return set(socket, SOL_SOCKET, SO_RCVBUF, bytes.receive);
  return {};
}

Result<SocketBuffers> buffers(int socket) {
  const auto send = get(socket, SOL_SOCKET, SO_SNDBUF);
  if (!send) return fail(send.error());
  const auto receive = get(socket, SOL_SOCKET, SO_RCVBUF);
  if (!receive) return fail(receive.error());
  return SocketBuffers{*send, *receive};
}

}  // namespace weir::os
