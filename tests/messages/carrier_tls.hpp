// TLS of the servers and the clients of the suite.
#pragma once

#include <memory>

#include "tests/messages/carrier.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/options.hpp"

namespace weir::tests::messages {

/// Returns the options of a server that makes its own certificate for weir.test.
tls::ServerOptions self_signed_options();
/// Returns a client that accepts every certificate, and offers the protocol by ALPN.
std::shared_ptr<tls::Client> trusting_client(Protocol protocol);
/// Returns the name of the protocol in ALPN.
const char* alpn_of(Protocol protocol) noexcept;

}  // namespace weir::tests::messages
