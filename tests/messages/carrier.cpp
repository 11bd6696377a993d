#include "tests/messages/carrier.hpp"

#include <array>
#include <cstddef>

namespace weir::tests::messages {

std::vector<Carrier> all_carriers() {
  std::vector<Carrier> all;
  for (const auto protocol :
       {Protocol::http_1_0, Protocol::http_1_1, Protocol::http_2, Protocol::memory}) {
    for (const auto layer : {Layer::plain, Layer::tls}) {
      if (protocol == Protocol::memory && layer == Layer::tls) continue;
      for (const auto way : {Way::direct, Way::proxied_http_1_1, Way::proxied_http_2}) {
        all.push_back({protocol, layer, way});
      }
    }
  }
  return all;
}

std::string name_of(Protocol protocol) {
  constexpr std::array protocols{"HTTP/1.0", "HTTP/1.1", "HTTP/2", "memory"};
  return protocols.at(static_cast<std::size_t>(protocol));
}

std::string name_of(Way way) {
  constexpr std::array ways{"direct", "through a proxy with HTTP/1.1",
                            "through a proxy with HTTP/2"};
  return ways.at(static_cast<std::size_t>(way));
}

std::string name_of(const Carrier& carrier) {
  const std::string layer = carrier.layer == Layer::tls ? ", TLS, " : ", plain, ";
  return name_of(carrier.protocol) + layer + name_of(carrier.way);
}

}  // namespace weir::tests::messages
