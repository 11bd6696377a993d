// Sockets: opening, accepting, connecting and their options. Every socket made here is
// non-blocking and close-on-exec, so what cannot be done at once fails with EAGAIN.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

struct ListenSettings {
  /// Finished handshakes that may wait to be accepted. The kernel cuts it to net.core.somaxconn.
  int backlog = 4096;
  /// Several listeners, one per core, share the port; the kernel spreads connections over them.
  bool reuse_port = false;
  /// With reuse_port: EADDRINUSE when anybody has the port already, such as another process of this
  /// user that would otherwise share its connections unasked.
  bool first = false;
  /// A restarted server takes its port back while old connections are in TIME_WAIT.
  bool reuse_address = true;
  /// [::] takes IPv6 only, instead of IPv4 too.
  bool v6_only = false;
};

/// A listening stream socket on `address` (port 0: the kernel chooses, see local_address()).
/// `[::]` falls back to `0.0.0.0` on a machine without IPv6, unless v6_only.
/// A Unix path that exists is taken over only if it is a socket that nobody listens on (a connect
/// is refused): the file left by a dead server is removed. EADDRINUSE otherwise. Two servers that
/// start on the same stale path at the same instant may both succeed; the later owns the path.
Result<Fd> open_listener(const Address& address, const ListenSettings& settings = {});

/// Tells one file from another while either exists. The file of a Unix listener exists as long as
/// the socket is open, even when its path names another by now.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// The socket's file at a Unix path; nullopt: there is none, or this is no path.
std::optional<FileIdentity> file_of(const Address& address) noexcept;

/// Removes the file of a Unix listener that is about to close, unless the path has been taken over:
/// `file` is what file_of() told when it began to listen.
void remove_local_path(const Address& address, const FileIdentity& file) noexcept;

/// A stream socket for a connection to an address of `family`.
Result<Fd> open_stream(AddressFamily family);

struct SocketPair {
  Fd first;
  Fd second;
};

/// Two connected Unix stream sockets.
Result<SocketPair> open_socket_pair();

enum class ConnectState : std::uint8_t {
  established,
  under_way,  ///< wait until the socket is writable, then ask take_error()
};

/// Starts a connection. EAGAIN from a Unix listener means that its queue is full.
Result<ConnectState> start_connect(int socket, const Address& address);

/// The next waiting connection; EAGAIN when there is none. `peer`, if given, receives its address.
Result<Fd> accept_one(int listener, Address* peer = nullptr);

/// Tells the peer that nothing more will be sent (FIN); receiving goes on.
Result<> shut_down_sending(int socket);
/// Ends both directions; wakes whoever waits on the socket.
Result<> shut_down(int socket);

/// How a TCP listener turns newcomers away.
enum class TurnAway : std::uint8_t {
  best,      ///< by filter, or by distance where that is not permitted
  filter,    ///< a socket filter; newer kernels (seen: 6.18) want CAP_NET_ADMIN for that
  distance,  ///< packets count as too far travelled; peers that send with a TTL of 255 get through
};

/// Makes a draining listener turn newcomers away while everybody who already knocked still gets in:
/// handshakes under way finish and can be accepted, so that a server can empty its queue and close
/// without resetting anybody. From here on a TCP listener ignores every first SYN (the client's
/// kernel sends it again and finds the successor, or nobody); a Unix listener refuses connections
/// at once. Cannot be taken back. Every connection accepted afterwards needs welcome_late().
Result<> refuse_new_handshakes(int listener, TurnAway how = TurnAway::best);

/// Takes from an accepted connection what it may have inherited from a listener that turns
/// newcomers away, or it may be deaf. What its peer sent before is sent again by TCP. Harmless on
/// every other stream socket.
Result<> welcome_late(int connection);

/// The address that the socket is bound to.
Result<Address> local_address(int socket);
/// The address on the other side.
Result<Address> peer_address(int socket);

/// Success where the descriptor is a stream socket that listens. ENOTSOCK, EINVAL (it does not
/// listen), EPROTOTYPE (it is of another type), EBADF.
Result<> check_listens(int descriptor);

/// Bytes sent on a stream that the other side's kernel has not yet taken over (SIOCOUTQ).
Result<std::size_t> unacknowledged(int socket);

/// The error that the socket has kept (SO_ERROR), which this forgets: what came of a connect.
Result<> take_error(int socket);

/// TCP_NODELAY: small writes leave at once instead of waiting for more.
Result<> set_no_delay(int socket, bool on);
/// SO_LINGER: zero makes close() reset the connection; nullopt (default): close in the background.
Result<> set_linger(int socket, std::optional<std::chrono::seconds> longest);

}  // namespace weir::os
