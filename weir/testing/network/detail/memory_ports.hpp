// What the streams and the datagrams of a simulated host decide alike: which port is free, and who
// hears what is sent to an address.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/os/address.hpp"

namespace weir {

/// Whether a socket on all interfaces gets what is sent to `peer`. [::] takes IPv4 too.
bool covers(const os::Address& bound, const os::Address& peer) noexcept;

/// This machine, of `family`, which is IPv4 or IPv6.
os::Address loopback_of(os::AddressFamily family, std::uint16_t port) noexcept;

/// Ports that nobody asked for, each after the one before. Threads: one.
class MemoryPorts {
 public:
  std::uint16_t next() noexcept;
  /// `address` with the next port that is not `taken(address)`; none: all are.
  template <class Taken>
  std::optional<os::Address> find(const os::Address& address, Taken taken) {
    for (unsigned tried = 0; tried < end - first; ++tried) {
      const os::Address found = address.with_port(next());
      if (!taken(found)) return found;
    }
    return std::nullopt;
  }

 private:
  // The range that Linux chooses from unless told otherwise.
  static constexpr std::uint16_t first = 32768;
  static constexpr std::uint16_t end = 61000;
  std::uint16_t last_ = 0;
};

}  // namespace weir
