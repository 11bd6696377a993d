#include "tests/messages/carrier.hpp"

#include <array>
#include <cstddef>

namespace weir::tests::messages {

std::vector<Carrier> all_carriers() {
  std::vector<Carrier> all;
  for (const auto protocol : {Protocol::http_1_0, Protocol::http_1_1, Protocol::http_2}) {
    for (const auto layer : {Layer::plain, Layer::tls}) {
      for (const auto way : {Way::direct, Way::proxied_http_1_1, Way::proxied_http_2}) {
        all.push_back({protocol, layer, way});
      }
    }
  }
  return all;
}

std::string name_of(const Carrier& carrier) {
  constexpr std::array protocols{"HTTP/1.0", "HTTP/1.1", "HTTP/2"};
  constexpr std::array layers{", plain", ", TLS"};
  constexpr std::array ways{"", ", through a proxy with HTTP/1.1", ", through a proxy with HTTP/2"};
  return std::string(protocols.at(static_cast<std::size_t>(carrier.protocol))) +
         layers.at(static_cast<std::size_t>(carrier.layer)) +
         ways.at(static_cast<std::size_t>(carrier.way));
}

}  // namespace weir::tests::messages
