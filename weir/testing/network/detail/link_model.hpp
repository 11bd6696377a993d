// Ways between simulated hosts: how long what is sent travels, and whether it gets through.
#pragma once

#include <cstddef>

#include "weir/base/time.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"

namespace weir {

class MemoryDatagramNetwork;
class MemoryNetwork;

/// One direction between two hosts, or inside one. Threads: one. Lifetime: outlives the streams.
class MemoryPath {
 public:
  virtual ~MemoryPath() = default;

  virtual MemoryClock& clock() noexcept = 0;
  /// How long the next parcel takes.
  virtual Duration delay() = 0;
  /// How much of `most` bytes travels in one parcel: 1 to `most`.
  virtual std::size_t parcel(std::size_t most) = 0;
  /// Whether anything gets through now. What does not is sent again later, as TCP does.
  virtual bool open() const noexcept = 0;
};

/// How the networks of several hosts reach each other. Threads: one.
class MemoryRoutes {
 public:
  virtual ~MemoryRoutes() = default;

  /// Of the host that has this address, whatever the port; nullptr: there is none.
  virtual MemoryNetwork* network_at(const os::Address& address) = 0;
  virtual MemoryDatagramNetwork* datagrams_at(const os::Address& address) = 0;
  /// Between the hosts that have these addresses.
  virtual MemoryPath& path(const os::Address& from, const os::Address& to) = 0;
};

}  // namespace weir
