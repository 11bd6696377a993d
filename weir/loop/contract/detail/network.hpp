// Contract of a platform: sockets.
#pragma once

#include <cstddef>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/close_mode.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"

namespace weir {

struct ListenOptions {
  int backlog = 4096;      ///< capped by the maximum of the system
  bool reuse_port = true;  ///< listeners of one address share its connections
  /// Fails with EADDRINUSE if any other socket has the port, whatever `reuse_port` is.
  bool require_unused = false;
};

}  // namespace weir

namespace weir::loop {

struct StreamOptions {
  bool no_delay = true;  ///< TCP_NODELAY: small writes are sent immediately
};

/// Options of a new datagram socket; see os::DatagramSettings for details.
struct DatagramOptions {
  /// Address to bind to. The platform chooses the port if it is 0. The family of `peer` decides if
  /// there is no address.
  os::Address local = {};
  /// Address that the socket is connected to; none: it exchanges datagrams with any peer.
  os::Address peer = {};
  bool reuse_port = false;  ///< sockets of one address share the datagrams
  /// Fails with EADDRINUSE if any other socket has the port, whatever `reuse_port` is.
  bool require_unused = false;
  /// Index of the interface for sending to multicast groups; 0: the routing table decides.
  unsigned multicast_interface = 0;
  /// Allows the kernel to join datagrams of one size from one peer; see Datagram::segment_size.
  bool gro = false;
};

/// The network of a Platform: its sockets and their descriptors.
/// Threads: all functions from any thread.
/// Lifetime: outlives every descriptor that it made.
class PlatformNetwork {
 public:
  /// Opens a listening socket. If the port is 0, the platform chooses one, and local_address()
  /// returns it.
  virtual Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) = 0;
  /// Opens an unconnected stream socket of the family of `peer`, for Backend::connect().
  virtual Result<Descriptor> open_stream(const os::Address& peer) = 0;
  /// Opens a datagram socket for SocketRole::datagrams.
  /// Errors: Errc::unsupported if the platform has none.
  virtual Result<Descriptor> open_datagrams([[maybe_unused]] const DatagramOptions& options) {
    return fail(Errc::unsupported);
  }
  /// join_group() lets the socket receive datagrams that are sent to the group and to its own
  /// port. leave_group() ends that.
  /// Errors: EINVAL if `group` is not a multicast group. EADDRINUSE if the socket is already a
  /// member. EADDRNOTAVAIL if it is not a member.
  virtual Result<> join_group(int datagrams, const os::MulticastGroup& group) {
    static_cast<void>(datagrams), static_cast<void>(group);
    return fail(Errc::unsupported);
  }
  virtual Result<> leave_group(int datagrams, const os::MulticastGroup& group) {
    static_cast<void>(datagrams), static_cast<void>(group);
    return fail(Errc::unsupported);
  }
  virtual Result<> configure(int descriptor, const StreamOptions& options) = 0;
  /// Sets what the peer of a stream sees when the descriptor is closed, also at the end of the
  /// process. A Unix socket has no reset: it is always closed in order.
  virtual Result<> set_close_mode(int descriptor, CloseMode mode) = 0;
  virtual Result<os::Address> local_address(int descriptor) = 0;
  virtual Result<os::Address> peer_address(int descriptor) = 0;
  /// Returns the number of sent bytes of a stream that have not reached the platform of the peer
  /// yet.
  virtual Result<std::size_t> unacked_bytes(int descriptor) = 0;
  /// Stops a listener from taking new connections. Connections already begun can still be
  /// accepted, so closing the listener afterwards resets no connection. Connections accepted
  /// afterwards need configure() before they are read from.
  /// Returns: success if the platform can do it.
  virtual Result<> refuse_new_connections(int listener) = 0;
  /// Returns another descriptor of the same listening socket, for another loop. Each connection
  /// comes to one of the descriptors. The socket listens until all of them are closed.
  virtual Result<Descriptor> share(int listener) = 0;
  /// Takes over a listening socket that this process was given, and makes it non-blocking. The
  /// descriptor is closed if this fails.
  /// Errors: EINVAL, ENOTSOCK or EPROTOTYPE if it is not a listening stream socket. EBADF.
  /// Errc::unsupported if the platform has none.
  virtual Result<Descriptor> inherit_listener(int descriptor) {
    static_cast<void>(descriptor);
    return fail(Errc::unsupported);
  }
  /// Removes the file that listen() created for a Unix address, unless the file belongs to another
  /// socket by now. The listener must still be open. Does nothing for other addresses.
  virtual void remove_local_path(const os::Address& bound) noexcept = 0;
  virtual void close(int descriptor) noexcept = 0;

 protected:
  ~PlatformNetwork() = default;
};

}  // namespace weir::loop
