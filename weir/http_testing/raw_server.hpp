// A server that answers with any bytes, for tests of programs that send requests.
#pragma once

#include <string>

#include "weir/base/time.hpp"
#include "weir/sim/host.hpp"

namespace weir::http {

/// Returns the main function of a server on port 80 of a simulated host. It waits for the first
/// bytes of a request, and `delay` longer. It then sends `bytes` as they are, closes the connection
/// and serves the next one:
///
///     world.host("backend").start_service(http::raw_server("HTTP/1.1 200 OK\r\n\r\nhalf", 3s));
sim::MainFunction raw_server(std::string bytes, Duration delay = {});

}  // namespace weir::http
