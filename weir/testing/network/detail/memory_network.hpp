// The network between simulated sockets: its listeners, and how connections are established.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_ports.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {

/// A MemoryNetwork holds the listeners of one platform by address, and connects streams to them.
/// Listeners of the same address get its connections in turn. Data arrives immediately, unless
/// the network has joined a topology.
/// Threads: one.
/// Lifetime: outlives its listeners; streams may outlive it.
class MemoryNetwork {
 public:
  /// `buffer_bytes` is the number of bytes that each direction of a connection holds before
  /// sending has to wait.
  MemoryNetwork(std::size_t buffer_bytes, Nondeterminism& nondeterminism) noexcept
      : nondeterminism_(nondeterminism), buffer_bytes_(buffer_bytes) {}

  /// Gives this platform the address `own` on every port, in addition to loopback. Its
  /// connections then take the links of `topology`, also within the platform.
  void join(NetworkTopology& topology, const os::Address& own) noexcept;
  const os::Address& own_address() const noexcept { return own_; }

  struct ListenRequest {
    std::size_t backlog;
    bool reuse_port;
    bool require_unused;  ///< see ListenOptions
  };
  /// Opens a listener. Port 0 stands for a free port.
  /// Errors: EADDRINUSE, EAFNOSUPPORT.
  Result<std::unique_ptr<MemoryListener>> listen(const os::Address& address, ListenRequest request);

  std::unique_ptr<MemoryStream> open_stream();

  enum class ConnectResult : std::uint8_t {
    established,
    refused,   ///< no socket listens at the address
    no_reply,  ///< no answer, so TCP would retry: a full queue, a listener that refuses, a closed
               ///< link, or an address without a host
  };
  /// Makes one attempt to connect `stream`, which is unconnected.
  ConnectResult connect(MemoryStream& stream, const os::Address& peer);

 private:
  friend class MemoryListener;
  void remove(const MemoryListener& listener);
  bool taken(const os::Address& address, bool reuse_port) const;
  std::vector<MemoryListener*> listeners_for(const os::Address& peer) const;
  MemoryNetwork* network_of(const os::Address& peer);
  MemoryListener* next_of(const std::vector<MemoryListener*>& listeners);

  Nondeterminism& nondeterminism_;
  NetworkTopology* topology_ = nullptr;  // links to other hosts
  os::Address own_ = os::Address::loopback(0);
  std::size_t buffer_bytes_;
  std::vector<MemoryListener*> listeners_;
  std::map<std::string, std::size_t> next_listener_;  // by address: index of the next listener
  MemoryPorts ports_;
};

}  // namespace weir
