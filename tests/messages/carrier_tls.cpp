#include "tests/messages/carrier_tls.hpp"

#include <utility>

namespace weir::tests::messages {

tls::ServerOptions self_signed_options() {
  tls::ServerOptions options;
  options.self_signed.emplace();
  options.self_signed->names = {"weir.test"};
  return options;
}

std::shared_ptr<tls::Client> trusting_client(Protocol protocol) {
  tls::ClientOptions options;
  options.trust = {};
  options.verification = tls::Verification::none;
  options.protocols = {alpn_of(protocol)};
  return std::make_shared<tls::Client>(std::move(options));
}

const char* alpn_of(Protocol protocol) noexcept {
  return protocol == Protocol::http_2 ? "h2" : "http/1.1";
}

}  // namespace weir::tests::messages
