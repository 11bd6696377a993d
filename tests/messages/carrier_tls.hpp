// TLS of the servers and the clients of the suite.
#pragma once

#include <memory>

#include "tests/messages/carrier.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/options.hpp"

namespace weir::tests::messages {

/// Returns the options of a server with a certificate of its own for weir.test and 127.0.0.1.
tls::ServerOptions self_signed_options();
/// Returns a client that trusts this certificate only, and offers the protocol by ALPN.
std::shared_ptr<tls::Client> trusting_client(Protocol protocol);
/// Returns the name of the protocol in ALPN.
const char* alpn_of(Protocol protocol) noexcept;

}  // namespace weir::tests::messages
