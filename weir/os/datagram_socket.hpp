// Datagram sockets (UDP over IPv4 and IPv6): opening them, and the groups they listen to.
#pragma once

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

struct DatagramSettings {
  /// Where it is bound; port 0: the kernel chooses. None: where `peer` is reached from.
  Address local = {};
  /// To whom it is connected: it sends to nobody else, hears nobody else, and is told when nobody
  /// is there (ECONNREFUSED). None: it talks with everybody.
  Address peer = {};
  /// Several sockets, one per core, share the port; the kernel gives each peer's to one of them.
  bool reuse_port = false;
  /// With reuse_port: EADDRINUSE when anybody has the port already; those who come later share it.
  bool first = false;
  /// [::] takes IPv6 only, instead of IPv4 too.
  bool v6_only = false;
  /// The index of the interface by which it sends to groups; 0: as the routes say.
  unsigned multicast_interface = 0;
  /// It receives what came from one peer in datagrams of one size as one, and with it a control
  /// message that says which size (UDP_GRO). Where the kernel cannot do that (before Linux 5.0), it
  /// does not.
  bool joined = false;
};

/// A datagram socket, non-blocking and close-on-exec. `[::]` falls back to `0.0.0.0` on a machine
/// without IPv6, unless v6_only. It hears no group that it has not joined, not even one that
/// another socket of this machine has. Errors: EAFNOSUPPORT without any address and for those that
/// are not IP; the kernel's (EADDRINUSE, EACCES, ENETUNREACH …).
Result<Fd> open_datagram_socket(const DatagramSettings& settings);

/// A group of receivers, and where it is listened to.
struct MulticastGroup {
  Address address;  ///< its port does not matter
  /// The index of the interface; 0: the one that an IPv6 address names, or as the routes say.
  unsigned interface = 0;
};

/// From now on the socket hears what is sent to the group and to its own port. Errors: EINVAL for
/// what is no group, EADDRINUSE when it has joined already, ENODEV …
Result<> join_group(int socket, const MulticastGroup& group);
/// Errors: EADDRNOTAVAIL when it has not joined.
Result<> leave_group(int socket, const MulticastGroup& group);

}  // namespace weir::os
