// Opening, listening, connecting and accepting. The socket options are in socket_options.cpp.
#include "weir/os/detail/io/socket.hpp"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "weir/os/detail/io/socket_calls.hpp"

namespace weir::os {
namespace {

int domain_of(AddressFamily family) noexcept {
  switch (family) {
    case AddressFamily::ipv4:
      return AF_INET;
    case AddressFamily::ipv6:
      return AF_INET6;
    case AddressFamily::local:
      return AF_UNIX;
    case AddressFamily::none:
      break;
  }
  return AF_UNSPEC;
}

Result<> bind_to(int socket, const Address& address) {
  if (::bind(socket, as_sockaddr(address), address.size()) < 0) return fail(system_error(errno));
  return {};
}

/// Returns true if the path names a socket that refuses connections because its server has ended.
bool is_stale(const Address& address) {
  if (!socket_file(address)) return false;
  const auto probe = open_stream(AddressFamily::local);
  if (!probe) return false;
  const auto connected = start_connect(probe->get(), address);
  return !connected && connected.error() == system_error(ECONNREFUSED);
}

Result<> bind_local(int socket, const Address& address) {
  auto bound = bind_to(socket, address);
  if (bound || bound.error() != system_error(EADDRINUSE)) return bound;
  const std::string path(address.path());
  if (path.empty() || !is_stale(address)) return bound;
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) return bound;
  return bind_to(socket, address);
}

Result<> apply(int socket, AddressFamily family, const ListenSettings& settings) {
  if (family == AddressFamily::local) return {};
  if (settings.reuse_address) {
    if (auto done = set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1); !done) return done;
  }
  if (settings.reuse_port && !settings.require_unused) {
    if (auto done = set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1); !done) return done;
  }
  if (family == AddressFamily::ipv6) {
    const int only = settings.v6_only ? 1 : 0;
    if (auto done = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, only); !done) return done;
  }
  return {};
}

Result<Fd> listen_on(const Address& address, const ListenSettings& settings) {
  auto socket = open_stream(address.family());
  if (!socket) return socket;
  if (auto done = apply(socket->get(), address.family(), settings); !done) {
    return fail(done.error());
  }
  const bool local = address.family() == AddressFamily::local;
  WEIR_TRY(local ? bind_local(socket->get(), address) : bind_to(socket->get(), address));
  if (!local && settings.reuse_port && settings.require_unused) {
    // bind() without the option has proved that the port was unused. Later sockets may share it.
    if (auto done = set_option(socket->get(), SOL_SOCKET, SO_REUSEPORT, 1); !done) {
      return fail(done.error());
    }
  }
  if (::listen(socket->get(), settings.backlog) < 0) return fail(system_error(errno));
  return socket;
}

/// Attaches a filter that drops first SYNs. The filter of a listener sees segments from the TCP
/// header on. Byte 13 holds the flags.
Result<> drop_first_syns(int listener) {
  constexpr std::uint32_t flags_offset = 13;
  constexpr std::uint32_t syn = 0x02;
  constexpr std::uint32_t ack = 0x10;
  constexpr std::uint32_t whole_segment = 0xffffffff;
  std::array<sock_filter, 5> program{{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, flags_offset),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, syn | ack),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syn, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, whole_segment),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

/// Sets the minimum TTL of received packets; 0 accepts every packet. The kernel checks it for a
/// first SYN, but not for the packets of a handshake in progress. The accepted connection inherits
/// the value. An IPv6 socket needs both options, because it may use IPv4 too.
Result<> set_ttl_min(int socket, AddressFamily family, int ttl) {
  if (family == AddressFamily::ipv6) {
    if (auto done = set_option(socket, IPPROTO_IPV6, IPV6_MINHOPCOUNT, ttl); !done) return done;
  }
  return set_option(socket, IPPROTO_IP, IP_MINTTL, ttl);
}

template <class Call>
Result<Address> query_address(int socket, Call call) {
  Address address;
  socklen_t size = Address::capacity;
  if (call(socket, static_cast<sockaddr*>(address.buffer()), &size) < 0) {
    return fail(system_error(errno));
  }
  address.set_size(size);
  return address;
}

}  // namespace

Result<Fd> open_listener(const Address& address, const ListenSettings& settings) {
  auto listener = listen_on(address, settings);
  if (listener || settings.v6_only || !address.is_any()) return listener;
  if (address.family() != AddressFamily::ipv6 || !means_no_ipv6(listener.error())) return listener;
  return listen_on(Address::ipv4({}, address.port()), settings);
}

std::optional<FileIdentity> socket_file(const Address& address) noexcept {
  struct stat file{};
  if (address.path().empty() || ::lstat(address.path().data(), &file) < 0) return std::nullopt;
  if (!S_ISSOCK(file.st_mode)) return std::nullopt;
  return FileIdentity{file.st_dev, file.st_ino};
}

void remove_local_path(const Address& address, const FileIdentity& file) noexcept {
  if (socket_file(address) == file) ::unlink(address.path().data());
}

Result<Fd> open_stream(AddressFamily family) {
  const int socket = ::socket(domain_of(family), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail(system_error(errno));
  return Fd(socket);
}

Result<SocketPair> open_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return fail(system_error(errno));
  }
  return SocketPair{Fd(ends[0]), Fd(ends[1])};
}

Result<ConnectState> start_connect(int socket, const Address& address) {
  if (::connect(socket, as_sockaddr(address), address.size()) == 0) {
    return ConnectState::established;
  }
  // An interrupted connect continues in the background (POSIX), like one in progress.
  if (errno == EINPROGRESS || errno == EINTR) return ConnectState::in_progress;
  return fail(system_error(errno));
}

Result<Fd> accept_one(int listener, Address* peer) {
  for (;;) {
    socklen_t size = Address::capacity;
    auto* where = peer == nullptr ? nullptr : static_cast<sockaddr*>(peer->buffer());
    const int socket =
        ::accept4(listener, where, peer == nullptr ? nullptr : &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      if (peer != nullptr) peer->set_size(size);
      return Fd(socket);
    }
    if (errno != EINTR) return fail(system_error(errno));
  }
}

Result<> shut_down_sending(int socket) {
  if (::shutdown(socket, SHUT_WR) < 0) return fail(system_error(errno));
  return {};
}

Result<> shut_down(int socket) {
  if (::shutdown(socket, SHUT_RDWR) < 0) return fail(system_error(errno));
  return {};
}

Result<> refuse_new_handshakes(int listener, RefuseMethod how) {
  WEIR_TRY(const auto address, local_address(listener));
  if (!address.is_inet()) {
    // Linux keeps the queued connections of a Unix listener, but it would reset those of TCP.
    if (::shutdown(listener, SHUT_RD) < 0) return fail(system_error(errno));
    return {};
  }
  if (how != RefuseMethod::ttl) {
    auto filtered = drop_first_syns(listener);
    const bool forbidden = !filtered && filtered.error() == system_error(EPERM);
    if (how == RefuseMethod::filter || !forbidden) return filtered;
  }
  constexpr int ttl_max = 255;
  return set_ttl_min(listener, address.family(), ttl_max);
}

Result<> clear_inherited_refusal(int connection) {
  WEIR_TRY(const auto address, local_address(connection));
  if (!address.is_inet()) return {};
  return set_ttl_min(connection, address.family(), 0);
}

Result<Address> local_address(int socket) {
  return query_address(socket, ::getsockname);
}

Result<Address> peer_address(int socket) {
  return query_address(socket, ::getpeername);
}

Result<> take_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  if (error != 0) return fail(system_error(error));
  return {};
}

}  // namespace weir::os
