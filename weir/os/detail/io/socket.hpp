// Stream sockets: opening, accepting, connecting and options. Every socket opened here is
// non-blocking and close-on-exec. An operation that would have to wait fails with EAGAIN.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

struct ListenSettings {
  /// The most completed handshakes that wait to be accepted. The kernel limits the number to
  /// net.core.somaxconn.
  int backlog = 4096;
  /// True if several listeners, one per core, share the port. The kernel distributes connections
  /// among them.
  bool reuse_port = false;
  /// True if opening fails with EADDRINUSE when the port is already in use, even though reuse_port
  /// is true. Another process of this user could otherwise share its port by accident.
  bool require_unused = false;
  /// True if a restarted server may bind its port again while old connections are in TIME_WAIT.
  bool reuse_address = true;
  /// True if `[::]` accepts IPv6 only, and not IPv4 too.
  bool v6_only = false;
};

/// Opens a listening stream socket on `address`. The kernel chooses a port instead of 0, which
/// local_address() returns. `[::]` falls back to `0.0.0.0` on a machine without IPv6, unless
/// v6_only is true.
///
/// An existing Unix path is taken over only if it is a socket that refuses connections, the file of
/// a dead server. Two servers that start on the same stale path at the same time may both succeed.
/// The later one then owns the path.
/// Errors: EADDRINUSE if the address is in use or the Unix path cannot be taken over; the kernel's.
Result<Fd> open_listener(const Address& address, const ListenSettings& settings = {});

/// A FileIdentity distinguishes a file from all others while it exists. The file of a Unix listener
/// exists as long as its socket is open, even if the path names another file by then.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Returns the socket file at a Unix path; nullopt if there is none or `address` is not a path.
std::optional<FileIdentity> socket_file(const Address& address) noexcept;

/// Removes the file of a Unix listener that is about to close, unless another listener has taken
/// over the path. `file` is the result of socket_file() from when the listener began to listen.
void remove_local_path(const Address& address, const FileIdentity& file) noexcept;

/// Opens a stream socket for a connection to an address of `family`.
Result<Fd> open_stream(AddressFamily family);

struct SocketPair {
  Fd first;
  Fd second;
};

/// Opens two connected Unix stream sockets.
Result<SocketPair> open_socket_pair();

enum class ConnectState : std::uint8_t {
  established,
  in_progress,  ///< when the socket becomes writable, take_error() returns the result
};

/// Starts a connection.
/// Errors: EAGAIN if the queue of a Unix listener is full; the kernel's.
Result<ConnectState> start_connect(int socket, const Address& address);

/// Accepts the next waiting connection and stores its address in `peer`, unless `peer` is null.
/// Errors: EAGAIN if no connection waits; the kernel's.
Result<Fd> accept_one(int listener, Address* peer = nullptr);

/// Ends sending and signals it to the peer (FIN). The socket can still receive.
Result<> shut_down_sending(int socket);
/// Ends both directions. It wakes all threads and polls that wait on the socket.
Result<> shut_down(int socket);

/// The method by which a TCP listener refuses new connections.
enum class RefuseMethod : std::uint8_t {
  best,    ///< `filter`, or `ttl` if a filter is not permitted
  filter,  ///< a socket filter; newer kernels (seen: 6.18) require CAP_NET_ADMIN
  ttl,     ///< a minimum TTL; peers that send with a TTL of 255 still connect
};

/// Makes a draining listener refuse new connections. Handshakes in progress complete and can be
/// accepted. A server can therefore empty its queue and close without resetting a connection. A TCP
/// listener ignores every first SYN from now on. The client's kernel repeats it and reaches the
/// successor of this listener, if there is one. A Unix listener refuses connections immediately.
/// The call cannot be undone. The caller must pass every connection that it accepts afterwards to
/// clear_inherited_refusal().
Result<> refuse_new_handshakes(int listener, RefuseMethod how = RefuseMethod::best);

/// Removes from an accepted connection the TTL limit of a listener that refuses new connections.
/// The connection might otherwise drop every packet of its peer. TCP repeats the packets that the
/// peer sent before. The call has no effect on other stream sockets.
Result<> clear_inherited_refusal(int connection);

/// Returns the address to which the socket is bound.
Result<Address> local_address(int socket);
/// Returns the address of the peer.
Result<Address> peer_address(int socket);

/// Checks that the descriptor is a listening stream socket.
/// Errors: ENOTSOCK; EINVAL if the socket does not listen; EPROTOTYPE if it is of another type;
/// EBADF.
Result<> check_listening(int descriptor);

/// Returns the bytes sent on a stream that the peer's kernel has not acknowledged yet (SIOCOUTQ).
Result<std::size_t> unacked_bytes(int socket);

/// Returns and clears the pending error of the socket (SO_ERROR), such as the result of a connect.
Result<> take_error(int socket);

/// Sets TCP_NODELAY. If `on` is true, small writes are sent immediately.
Result<> set_no_delay(int socket, bool on);
/// Sets SO_LINGER. Zero makes close() reset the connection. nullopt, the kernel's default, makes it
/// close in the background.
Result<> set_linger(int socket, std::optional<std::chrono::seconds> longest);

}  // namespace weir::os
