// The TLS server of a command line.
#pragma once

#include <memory>

#include "weir/runtime/options.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::tls {
class Server;
}

namespace weir::tls::detail {

/// Makes the server that the arguments ask for; see TlsArguments::used().
/// Errors: Error::library_failure, also in a build without OpenSSL.
Outcome<std::shared_ptr<Server>> program_server(const TlsArguments& arguments);

}  // namespace weir::tls::detail
