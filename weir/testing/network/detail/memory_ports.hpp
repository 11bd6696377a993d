// Ports and addresses of a simulated platform, shared by its streams and its datagrams.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/os/address.hpp"

namespace weir {

/// Returns true if `bound` is a wildcard address that receives what is sent to `peer`. [::] also
/// receives IPv4.
bool covers(const os::Address& bound, const os::Address& peer) noexcept;

/// Returns the loopback address of `family`, which is IPv4 or IPv6.
os::Address loopback_of(os::AddressFamily family, std::uint16_t port) noexcept;

/// The ephemeral ports of a platform, in ascending order.
/// Threads: one.
class MemoryPorts {
 public:
  std::uint16_t next() noexcept;
  /// Returns `address` with the next port for which `taken(address)` is false; nullopt if all are
  /// taken.
  template <class Taken>
  std::optional<os::Address> find(const os::Address& address, Taken taken) {
    for (unsigned tried = 0; tried < end - first; ++tried) {
      const os::Address found = address.with_port(next());
      if (!taken(found)) return found;
    }
    return std::nullopt;
  }

 private:
  // The default range of Linux.
  static constexpr std::uint16_t first = 32768;
  static constexpr std::uint16_t end = 61000;
  std::uint16_t last_ = 0;
};

}  // namespace weir
