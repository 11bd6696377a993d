// The network of a client, by which the clients of a service are told apart.
#pragma once

#include <cstdint>

#include "weir/base/text/detail/hash.hpp"
#include "weir/http/message/request.hpp"

namespace weir::http::detail {

/// The first bits of an address that tell clients apart. One client usually has a whole IPv6
/// network of 64 bits.
struct NetworkBits {
  unsigned ipv4 = 32;
  unsigned ipv6 = 64;
};

/// Returns the hash of the first bits of the client_address(). All clients of Unix sockets have the
/// same one. The seed is secret, so that no client can find an address with the hash of another.
Hash128 hash_client_network(const Request& request, const NetworkBits& bits, std::uint64_t seed);

}  // namespace weir::http::detail
