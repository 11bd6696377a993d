// Wildcard and loopback addresses, and the order of the ephemeral ports.
#include "weir/testing/network/detail/memory_ports.hpp"

#include <array>

namespace weir {

using os::Address;
using os::AddressFamily;

bool covers(const Address& bound, const Address& peer) noexcept {
  if (!bound.is_any() || bound.port() != peer.port() || !peer.is_inet()) return false;
  return bound.family() == peer.family() || bound.family() == AddressFamily::ipv6;
}

Address loopback_of(AddressFamily family, std::uint16_t port) noexcept {
  if (family == AddressFamily::ipv4) return Address::loopback(port);
  std::array<std::uint8_t, 16> loopback{};
  loopback.back() = 1;
  return Address::ipv6(loopback, port);
}

std::uint16_t MemoryPorts::next() noexcept {
  last_ = last_ < first || last_ + 1 == end ? first : static_cast<std::uint16_t>(last_ + 1);
  return last_;
}

}  // namespace weir
