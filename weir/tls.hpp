// Umbrella header for TLS: servers, clients, certificates and streams. In a build of Weir without
// OpenSSL, the functions that load, make or connect fail with Error::library_failure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/certificate/identity.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/openssl_memory.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/server.hpp"
#include "weir/tls/stream.hpp"
#include "weir/tls/ticket_keys.hpp"
