// Datagrams between the sockets of a simulated platform, and the sockets themselves.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_ports.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {

class MemoryDatagramNetwork;

/// A datagram that the program has not received yet.
struct MemoryDatagram {
  std::vector<std::byte> bytes;
  os::Address peer;
};

/// A UDP socket that behaves as a non-blocking one of Linux does. It drops a datagram if its
/// buffer has no room.
/// Threads: one.
class MemoryDatagramSocket final : public MemoryEndpoint {
 public:
  /// Binds a socket to `local`. `nondeterminism` is that of its process.
  MemoryDatagramSocket(MemoryDatagramNetwork& network, Nondeterminism& nondeterminism,
                       const os::Address& local, const loop::DatagramOptions& options);
  ~MemoryDatagramSocket() override;

  /// Returns the peer of a connected socket; an address without a family if it is not connected.
  const os::Address& peer() const noexcept { return peer_; }
  /// Returns the error that receive() would return: none, EAGAIN, or once the error of an earlier
  /// datagram.
  std::error_code receivable() const noexcept;
  /// Takes the oldest datagram.
  /// Errors: those of receivable().
  Result<MemoryDatagram> receive();
  /// Sends to `to`, or to the connected peer if `to` has no family.
  /// Errors: those of receivable() except EAGAIN; EMSGSIZE, EDESTADDRREQ, EAFNOSUPPORT.
  Result<> send(Bytes bytes, const os::Address& to);
  /// Join or leave a multicast group.
  /// Errors: those of Platform::join_group() and leave_group().
  Result<> join(const os::Address& group);
  Result<> leave(const os::Address& group);
  /// Unbinds the socket because its process was killed.
  void close_on_kill() noexcept;

 private:
  friend class MemoryDatagramNetwork;
  // The default of Linux' net.core.rmem_default, and about the overhead that Linux counts for
  // each datagram.
  static constexpr std::size_t buffer_bytes = 212'992;
  static constexpr std::size_t overhead_bytes = 768;

  void arrived(Bytes bytes, const os::Address& from);
  void refused();
  bool is_member(const os::Address& group) const noexcept;

  MemoryDatagramNetwork& network_;
  Nondeterminism& nondeterminism_;
  os::Address peer_;
  bool reuse_port_;
  std::error_code error_;
  std::deque<MemoryDatagram> queue_;
  std::size_t queued_bytes_ = 0;
  std::vector<os::Address> groups_;  // with port 0
};

/// A MemoryDatagramNetwork holds the bound datagram sockets of a platform. Datagrams arrive
/// immediately, exactly once, unless the network has joined a topology. A group reaches sockets
/// of its own platform only.
/// Threads: one.
/// Lifetime: outlives its sockets.
class MemoryDatagramNetwork {
 public:
  /// Gives this platform the address `own` on every port, in addition to loopback. Its datagrams
  /// then take the links of `topology`, also within the platform. Each datagram is delayed
  /// separately, so one may overtake another. A datagram on a closed link is lost.
  void join(NetworkTopology& topology, const os::Address& own) noexcept;
  /// Opens a socket. `nondeterminism` is that of its process; it decides which datagrams are lost
  /// or doubled.
  /// Errors: those of Platform::open_datagrams().
  Result<std::unique_ptr<MemoryDatagramSocket>> open(const loop::DatagramOptions& options,
                                                     Nondeterminism& nondeterminism);

 private:
  friend class MemoryDatagramSocket;
  struct DatagramRoute {
    const os::Address& from;
    const os::Address& to;
  };
  /// Sends `copies` copies. Returns false if it is already known that no socket could receive
  /// them.
  bool send(Bytes bytes, const DatagramRoute& route, std::size_t copies);
  void transmit(Bytes bytes, const DatagramRoute& route, MemoryDatagramNetwork& there);
  os::Address source_of(const os::Address& local, const os::Address& target) const;
  bool elsewhere(const os::Address& target) const noexcept;
  /// Reports ECONNREFUSED to the sockets at `route.from` that are connected to `route.to`.
  void refused(const DatagramRoute& route);
  /// Returns true if a socket could receive the datagram.
  bool deliver(Bytes bytes, const DatagramRoute& route);
  void deliver_to_group(Bytes bytes, const DatagramRoute& route);
  bool taken(const os::Address& address, bool shared) const;
  std::vector<MemoryDatagramSocket*> receivers_of(const DatagramRoute& route) const;

  NetworkTopology* topology_ = nullptr;  // links to other hosts
  os::Address own_ = os::Address::loopback(0);
  std::vector<MemoryDatagramSocket*> sockets_;
  MemoryPorts ports_;
};

}  // namespace weir
