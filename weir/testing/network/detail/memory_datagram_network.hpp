// Datagrams between the sockets of a simulated host, and the sockets themselves.
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
#include "weir/testing/memory_chance.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_ports.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

class MemoryDatagramNetwork;

/// A datagram that nobody has received yet.
struct MemoryDatagram {
  std::vector<std::byte> bytes;
  os::Address peer;
};

/// A UDP socket, behaving as a non-blocking one of Linux does. What there is no room for is
/// dropped. Threads: one.
class MemoryDatagramSocket final : public MemoryEndpoint {
 public:
  /// `chance` is its process'.
  MemoryDatagramSocket(MemoryDatagramNetwork& network, MemoryChance& chance,
                       const os::Address& local, const DatagramOptions& options);
  ~MemoryDatagramSocket() override;

  /// None: it is not connected.
  const os::Address& peer() const noexcept { return peer_; }
  /// What receive() would say: no error, EAGAIN, or what came of an earlier datagram, once.
  std::error_code receivable() const noexcept;
  /// The oldest. Errors: those of receivable().
  Result<MemoryDatagram> receive();
  /// To `to`, or to whom it is connected for none. Errors: as receivable() but for EAGAIN;
  /// EMSGSIZE, EDESTADDRREQ, EAFNOSUPPORT.
  Result<> send(Bytes bytes, const os::Address& to);
  /// Errors: those of Host::join() and leave().
  Result<> join(const os::Address& group);
  Result<> leave(const os::Address& group);
  /// Its process has been killed: nobody is bound there any more.
  void die() noexcept;

 private:
  friend class MemoryDatagramNetwork;
  // What Linux' net.core.rmem_default holds, and about what it counts for each beside its bytes.
  static constexpr std::size_t buffer_bytes = 212'992;
  static constexpr std::size_t overhead_bytes = 768;

  void arrived(Bytes bytes, const os::Address& from);
  void refused();
  bool is_member(const os::Address& group) const noexcept;

  MemoryDatagramNetwork& network_;
  MemoryChance& chance_;
  os::Address peer_;
  bool reuse_port_;
  std::error_code error_;
  std::deque<MemoryDatagram> queue_;
  std::size_t held_ = 0;
  std::vector<os::Address> groups_;  // their ports are 0
};

/// Who is bound where. Unless it is joined to others, what is sent has arrived: nothing takes time,
/// is lost or comes twice. Groups are heard on their own host only.
/// Threads: one. Lifetime: outlives its sockets.
class MemoryDatagramNetwork {
 public:
  /// From now on this host has the address `own`, whatever the port, besides loopback, and its
  /// datagrams, also those inside it, take the paths of `routes`: each by itself, so that one may
  /// overtake another. What comes while a path is shut is lost.
  void join(MemoryRoutes& routes, const os::Address& own) noexcept;
  /// A socket of the process whose `chance` decides what becomes of what it sends.
  /// Errors: those of Host::open_datagrams().
  Result<std::unique_ptr<MemoryDatagramSocket>> open(const DatagramOptions& options,
                                                     MemoryChance& chance);

 private:
  friend class MemoryDatagramSocket;
  struct Envelope {
    const os::Address& from;
    const os::Address& to;
  };
  /// So many times. False: it is known already that nobody could have heard it.
  bool send(Bytes bytes, const Envelope& envelope, std::size_t copies);
  void travel(Bytes bytes, const Envelope& envelope, MemoryDatagramNetwork& there);
  os::Address source_of(const os::Address& local, const os::Address& target) const;
  bool elsewhere(const os::Address& target) const noexcept;
  /// Those who are connected to `to` hear that nobody is there.
  void refused(const Envelope& envelope);
  /// Whether anybody could have heard it.
  bool deliver(Bytes bytes, const Envelope& envelope);
  void deliver_to_group(Bytes bytes, const Envelope& envelope);
  bool taken(const os::Address& address, bool shared) const;
  std::vector<MemoryDatagramSocket*> receivers_of(const Envelope& envelope) const;

  MemoryRoutes* routes_ = nullptr;  // to other hosts
  os::Address own_ = os::Address::loopback(0);
  std::vector<MemoryDatagramSocket*> sockets_;
  MemoryPorts ports_;
};

}  // namespace weir
