// Datagram sockets (UDP over IPv4 and IPv6) and their multicast groups.
#pragma once

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

struct DatagramSettings {
  /// The local address. The kernel chooses a port instead of 0. The kernel chooses a missing
  /// local address so that it reaches `peer`.
  Address local = {};
  /// The address to which the socket is connected. A connected socket sends only to this peer and
  /// receives only from it. It reports ECONNREFUSED if nothing listens at the peer's port. A socket
  /// without a peer exchanges datagrams with any address.
  Address peer = {};
  /// True if several sockets, one per core, share the port. The kernel delivers all datagrams of
  /// one peer to the same socket.
  bool reuse_port = false;
  /// True if opening fails with EADDRINUSE when the port is already in use, even though reuse_port
  /// is true. Sockets that are opened later may share the port.
  bool require_unused = false;
  /// True if `[::]` receives IPv6 only, and not IPv4 too.
  bool v6_only = false;
  /// The index of the interface for sending to multicast groups; 0: the routing table decides.
  unsigned multicast_interface = 0;
  /// True if the kernel may merge received datagrams of one peer and one size (UDP_GRO). A control
  /// message then holds the size of one datagram. A kernel without UDP_GRO (before Linux 5.0)
  /// merges nothing, and opening still succeeds.
  bool gro = false;
};

/// Opens a non-blocking, close-on-exec datagram socket. `[::]` falls back to `0.0.0.0` on a machine
/// without IPv6, unless v6_only is true. The socket receives only from multicast groups that it has
/// joined, even if another socket of this machine has joined others.
/// Errors: EAFNOSUPPORT if both addresses are missing or the address is not IP; the kernel's, such
/// as EADDRINUSE, EACCES and ENETUNREACH.
Result<Fd> open_datagram_socket(const DatagramSettings& settings);

/// A multicast group and the interface on which a socket receives from it.
struct MulticastGroup {
  Address address;  ///< the address of the group; its port is ignored
  /// The index of the interface. 0 stands for the scope of an IPv6 address, or else for the choice
  /// of the routing table.
  unsigned interface = 0;
};

/// Joins a multicast group. The socket then receives datagrams to the group and its own port.
/// Errors: EINVAL for an address that is not a multicast group; EADDRINUSE if the socket has
/// already joined; the kernel's others, such as ENODEV.
Result<> join_group(int socket, const MulticastGroup& group);
/// Leaves a multicast group.
/// Errors: EADDRNOTAVAIL if the socket has not joined the group.
Result<> leave_group(int socket, const MulticastGroup& group);

}  // namespace weir::os
