// The failures of handshakes for the error codes of OpenSSL.
#pragma once

#include "weir/tls/certificate/error.hpp"

namespace weir::tls::detail {

/// Returns the failure for an error code that OpenSSL has queued in a handshake; 0: it has queued
/// none.
Failure failure_of_handshake_error(unsigned long code);

}  // namespace weir::tls::detail
