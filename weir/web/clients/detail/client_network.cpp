#include "weir/web/clients/detail/client_network.hpp"

#include <algorithm>
#include <array>

#include "weir/os/ip_range.hpp"
#include "weir/web/clients/client_address.hpp"

namespace weir::http::detail {

Hash128 hash_client_network(const Request& request, const NetworkBits& bits, std::uint64_t seed) {
  const auto bytes = os::ip_bytes(client_address(request));
  if (!bytes) return hash_bytes({}, seed);
  const os::IpBytes kept = os::masked(*bytes, os::is_ipv4(*bytes) ? bits.ipv4 : bits.ipv6);
  std::array<char, sizeof(os::IpBytes)> text;
  std::ranges::copy(kept, text.begin());
  return hash_bytes({text.data(), text.size()}, seed);
}

}  // namespace weir::http::detail
