#include "weir/os/detail/io/datagram_socket.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "weir/os/detail/io/socket_calls.hpp"

namespace weir::os {
namespace {

/// Excludes the groups that only other sockets have joined. Linux includes them by default.
Result<> keep_to_own_groups(int socket, bool is_ipv6) {
  // IPV6_MULTICAST_ALL is newer than some headers: Linux 4.20.
  constexpr int ipv6_multicast_all = 29;
  if (is_ipv6) {
    if (auto done = set_option(socket, IPPROTO_IPV6, ipv6_multicast_all, 0); !done) return done;
  }
  return set_option(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

Result<> choose_interface(int socket, bool is_ipv6, unsigned index) {
  if (index == 0) return {};
  if (is_ipv6) return set_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(index));
  ip_mreqn choice{};
  choice.imr_ifindex = static_cast<int>(index);
  return set_option(socket, IPPROTO_IP, IP_MULTICAST_IF, choice);
}

Result<> set_gro(int socket, bool gro) {
  if (!gro) return {};
  auto done = set_option(socket, IPPROTO_UDP, UDP_GRO, 1);
  if (!done && done.error() == system_error(ENOPROTOOPT)) return {};
  return done;
}

Result<> apply(int socket, bool is_ipv6, const DatagramSettings& settings) {
  if (is_ipv6) {
    const int only = settings.v6_only ? 1 : 0;
    if (auto done = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, only); !done) return done;
  }
  if (auto done = keep_to_own_groups(socket, is_ipv6); !done) return done;
  if (auto done = choose_interface(socket, is_ipv6, settings.multicast_interface); !done) {
    return done;
  }
  if (auto done = set_gro(socket, settings.gro); !done) return done;
  if (!settings.reuse_port || settings.require_unused) return {};
  return set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1);
}

Result<Fd> open_as(const DatagramSettings& settings) {
  const bool bound = settings.local.family() != AddressFamily::none;
  const Address& named = bound ? settings.local : settings.peer;
  if (!named.is_inet()) return fail(system_error(EAFNOSUPPORT));
  const bool is_ipv6 = named.family() == AddressFamily::ipv6;
  Fd socket(::socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail(system_error(errno));
  WEIR_TRY(apply(socket.get(), is_ipv6, settings));
  if (bound && ::bind(socket.get(), as_sockaddr(settings.local), settings.local.size()) < 0) {
    return fail(system_error(errno));
  }
  if (settings.reuse_port && settings.require_unused) {
    // bind() without the option has proved that the port was unused. Later sockets may share it.
    if (auto done = set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1); !done) {
      return fail(done.error());
    }
  }
  if (settings.peer.family() != AddressFamily::none &&
      ::connect(socket.get(), as_sockaddr(settings.peer), settings.peer.size()) < 0) {
    return fail(system_error(errno));
  }
  return socket;
}

Result<> change_membership(int socket, const MulticastGroup& group, int action) {
  if (!group.address.is_inet()) return fail(system_error(EINVAL));
  const bool is_ipv6 = group.address.family() == AddressFamily::ipv6;
  group_req request{};
  request.gr_interface = group.interface;
  if (is_ipv6 && group.interface == 0) {
    sockaddr_in6 scoped{};
    std::memcpy(&scoped, group.address.data(), sizeof scoped);
    request.gr_interface = scoped.sin6_scope_id;
  }
  std::memcpy(&request.gr_group, group.address.data(), group.address.size());
  return set_option(socket, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, action, request);
}

}  // namespace

Result<Fd> open_datagram_socket(const DatagramSettings& settings) {
  auto socket = open_as(settings);
  if (socket || settings.v6_only || !settings.local.is_any()) return socket;
  if (settings.local.family() != AddressFamily::ipv6 || !means_no_ipv6(socket.error())) {
    return socket;
  }
  DatagramSettings without = settings;
  without.local = Address::ipv4({}, settings.local.port());
  return open_as(without);
}

Result<> join_group(int socket, const MulticastGroup& group) {
  return change_membership(socket, group, MCAST_JOIN_GROUP);
}

Result<> leave_group(int socket, const MulticastGroup& group) {
  return change_membership(socket, group, MCAST_LEAVE_GROUP);
}

}  // namespace weir::os
