// Links between simulated hosts: the delay of traffic, and whether it gets through.
#pragma once

#include <cstddef>

#include "weir/base/time.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"

namespace weir {

class MemoryDatagramNetwork;
class MemoryNetwork;

/// A LinkModel is one direction between two hosts, or within one host.
/// Threads: one.
/// Lifetime: outlives the streams.
class LinkModel {
 public:
  virtual ~LinkModel() = default;

  virtual MemoryClock& clock() noexcept = 0;
  /// Returns the delay of the next segment.
  virtual Duration delay() = 0;
  /// Returns how many of `most` bytes travel in one segment: 1 to `most`.
  virtual std::size_t segment(std::size_t most) = 0;
  /// Returns true if traffic gets through now. Streams retransmit what does not, as TCP does.
  virtual bool open() const noexcept = 0;
};

/// A NetworkTopology connects the networks of several hosts.
/// Threads: one.
class NetworkTopology {
 public:
  virtual ~NetworkTopology() = default;

  /// Return the network of the platform with this address on any port; nullptr if there is none.
  virtual MemoryNetwork* network_at(const os::Address& address) = 0;
  virtual MemoryDatagramNetwork* datagrams_at(const os::Address& address) = 0;
  /// Returns the link between the hosts with these addresses.
  virtual LinkModel& link(const os::Address& from, const os::Address& to) = 0;
};

}  // namespace weir
