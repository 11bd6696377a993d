// The blocks of loopback and private addresses.
#include "tools/weir/check/private_networks.hpp"

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace weir::check {
namespace {

bool is_local_or_private_ipv4(std::uint32_t address) noexcept {
  struct Block {
    std::uint32_t prefix;
    unsigned bits;
  };
  constexpr std::array<Block, 4> blocks{{{0x7f000000, 8},     // 127.0.0.0/8
                                         {0x0a000000, 8},     // 10.0.0.0/8
                                         {0xac100000, 12},    // 172.16.0.0/12
                                         {0xc0a80000, 16}}};  // 192.168.0.0/16
  for (const Block& each : blocks) {
    if ((address ^ each.prefix) >> (32U - each.bits) == 0) return true;
  }
  return false;
}

bool is_local_or_private_ipv6(const in6_addr& address) noexcept {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    std::uint32_t inner = 0;
    std::memcpy(&inner, address.s6_addr + 12, sizeof inner);
    return is_local_or_private_ipv4(ntohl(inner));
  }
  const bool unique_local = (address.s6_addr[0] & 0xfeU) == 0xfc;
  return unique_local || IN6_IS_ADDR_LOOPBACK(&address);
}

}  // namespace

bool is_local_or_private(const Endpoint& endpoint) noexcept {
  if (endpoint.is_any()) return true;  // a connection to a wildcard address stays on this machine
  switch (endpoint.family()) {
    case os::AddressFamily::none:
      return false;
    case os::AddressFamily::local:
      return true;
    case os::AddressFamily::ipv4: {
      sockaddr_in address{};
      std::memcpy(&address, endpoint.data(), sizeof address);
      return is_local_or_private_ipv4(ntohl(address.sin_addr.s_addr));
    }
    case os::AddressFamily::ipv6: {
      sockaddr_in6 address{};
      std::memcpy(&address, endpoint.data(), sizeof address);
      return is_local_or_private_ipv6(address.sin6_addr);
    }
  }
  return false;
}

}  // namespace weir::check
