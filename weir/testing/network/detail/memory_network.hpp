// The network between simulated sockets: who listens where, and how connections come about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/memory_chance.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_ports.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

/// The listeners of one host by address, and the way to them. Several listeners of one address get
/// its connections in turn. Unless it is joined to others, nothing takes time here: what is sent
/// has arrived.
/// Threads: one. Lifetime: outlives its listeners; streams may outlive it.
class MemoryNetwork {
 public:
  /// `buffer_bytes`: what each direction of a connection holds before sending has to wait.
  MemoryNetwork(std::size_t buffer_bytes, MemoryChance& chance) noexcept
      : chance_(chance), buffer_bytes_(buffer_bytes) {}

  /// From now on this host has the address `own`, whatever the port, besides loopback, and its
  /// connections, also those inside it, take the paths of `routes`.
  void join(MemoryRoutes& routes, const os::Address& own) noexcept;
  const os::Address& own_address() const noexcept { return own_; }

  struct ListenAsk {
    std::size_t backlog;
    bool reuse_port;
    bool first;  ///< see ListenOptions
  };
  /// Port 0: one that is free. Errors: EADDRINUSE, EAFNOSUPPORT.
  Result<std::unique_ptr<MemoryListener>> listen(const os::Address& address, ListenAsk ask);

  std::unique_ptr<MemoryStream> open_stream();

  enum class Answer : std::uint8_t {
    established,
    refused,  ///< nobody listens
    silence,  ///< the listener's queue is full, or it is closing, or nobody is there at all: TCP
              ///< would try again
  };
  /// One attempt to connect `stream`, which is unconnected.
  Answer connect(MemoryStream& stream, const os::Address& peer);

 private:
  friend class MemoryListener;
  void forget(const MemoryListener& listener);
  bool taken(const os::Address& address, bool reuse_port) const;
  std::vector<MemoryListener*> listeners_for(const os::Address& peer) const;
  MemoryNetwork* network_of(const os::Address& peer);
  MemoryListener* next_of(const std::vector<MemoryListener*>& listeners);

  MemoryChance& chance_;
  MemoryRoutes* routes_ = nullptr;  // to other hosts
  os::Address own_ = os::Address::loopback(0);
  std::size_t buffer_bytes_;
  std::vector<MemoryListener*> listeners_;
  std::map<std::string, std::size_t> turns_;  // by address: whose turn it is
  MemoryPorts ports_;
};

}  // namespace weir
