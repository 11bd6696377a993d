#include "tests/messages/carrier_tls.hpp"

#include <chrono>
#include <utility>

#include "weir/tls/certificate/identity.hpp"

namespace weir::tests::messages {

using namespace std::chrono_literals;

namespace {

/// Returns the identity of all servers, since making one takes time. It is valid at the time of the
/// kernel and of the World.
const tls::Identity& identity() {
  static const tls::Identity one =
      tls::Identity::self_signed({.names = {"weir.test", "127.0.0.1"}, .lifetime = 24h * 365 * 200})
          .value();
  return one;
}

}  // namespace

tls::ServerOptions self_signed_options() {
  tls::ServerOptions options;
  options.identities = {identity()};
  return options;
}

std::shared_ptr<tls::Client> trusting_client(Protocol protocol) {
  tls::ClientOptions options;
  options.trust = {.system = false, .files = {}, .pem = identity().chain()};
  options.protocols = {alpn_of(protocol)};
  return std::make_shared<tls::Client>(std::move(options));
}

const char* alpn_of(Protocol protocol) noexcept {
  return protocol == Protocol::http_2 ? "h2" : "http/1.1";
}

}  // namespace weir::tests::messages
