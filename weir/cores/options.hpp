// What a runtime and a server can be told from outside, with its defaults.
#pragma once

#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/loop/host.hpp"
#include "weir/os/address.hpp"

namespace weir {

struct RuntimeOptions {
  unsigned cores = 0;  ///< loops; 0: one per physical core that this process may use
  BackendChoice backend = BackendChoice::automatic;
  bool pin = true;                               ///< each loop's thread stays on its core, unless
                                                 ///< a cgroup quota left some cores out
  Duration deadline = std::chrono::seconds(10);  ///< how long a drain may take
  bool handle_signals = true;  ///< SIGINT and SIGTERM drain, the second one stops at once
  bool announce = true;        ///< log what runs where, and why, at the start
};

/// The options of a program that serves one endpoint.
struct ServerOptions : RuntimeOptions {
  Endpoint endpoint = Endpoint::any(8080);

  /// From --port N, --address A, --cores N, --backend B, --no-pin, --deadline SECONDS. Prints the
  /// usage and exits with 0 for --help; prints one line and exits with 2 for what is wrong.
  static ServerOptions from_args(int argc, char** argv);
};

}  // namespace weir
