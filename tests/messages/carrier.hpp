// The carriers of a message: the protocol, TLS or not, and the way from the client to the handler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::tests::messages {

/// The protocol of a client. `memory` has none: requests and responses are objects, see
/// MemoryCarrier.
enum class Protocol : std::uint8_t { http_1_0, http_1_1, http_2, memory };
enum class Layer : std::uint8_t { plain, tls };
/// The way from a client to the handler: a reverse proxy speaks the named protocol with the server
/// of the handler.
enum class Way : std::uint8_t { direct, proxied_http_1_1, proxied_http_2 };

struct Carrier {
  Protocol protocol = Protocol::http_1_1;
  Layer layer = Layer::plain;
  Way way = Way::direct;
};

inline bool is_direct(const Carrier& carrier) {
  return carrier.way == Way::direct;
}
/// Returns every combination that exists. Memory has no TLS.
std::vector<Carrier> all_carriers();
std::string name_of(Protocol protocol);
/// Returns "direct", or a text such as "through a proxy with HTTP/1.1".
std::string name_of(Way way);
/// Returns a text such as "HTTP/2, TLS, through a proxy with HTTP/1.1".
std::string name_of(const Carrier& carrier);

}  // namespace weir::tests::messages
