// The client side of a health check: asks a running instance, for probes of containers without a
// shell.
#pragma once

#include <string>

#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// The answer of a running instance.
struct HealthAnswer {
  bool ready = false;
  /// A line for people: "200: {"status":"ok"}", or why there is no answer. Bytes of the server that
  /// are not printable are \xNN.
  std::string text;
};

/// Sends `GET path` to a plain HTTP server of this machine or another, and waits for the answer. An
/// endpoint of all interfaces means this machine. A status of 200 means ready.
/// Threads: any that may block. It uses the operating system, not a Platform.
HealthAnswer ask_health(const Endpoint& endpoint, const std::string& path = "/readyz",
                        Duration limit = std::chrono::seconds(3));

/// Asks, prints the answer, and returns the exit status for main(): 0 ready, 1 otherwise. The
/// option `--healthcheck [ENDPOINT]` of ServerOptions::from_args() calls it. A program that reads
/// its options in another way calls it itself:
///
///     if (settings.healthcheck) return run_health_check(settings.admin);
///
/// Threads: any that may block.
int run_health_check(const Endpoint& endpoint);

}  // namespace weir
