// A client that sends a part of its bytes and leaves, for scenarios that cut each byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/task.hpp"

namespace weir::simulate {

/// The way in which a client leaves the connection.
enum class Leaving : std::uint8_t { close, close_side, silence };

/// The end of a client that has left.
struct CutAnswer {
  std::optional<std::string> received = {};  ///< all that the server has sent; none after a close
  std::string violation = {};                ///< the fault of the server; empty if there is none
};

/// Sends `bytes` to the server in pieces and with pauses, and leaves. It then reads until the
/// server closes the connection, for at most `patience`.
/// Lifetime: `random` and `bytes` outlive the task.
Task<CutAnswer> send_and_leave(sim::Random& random, Endpoint server, std::string_view bytes,
                               Leaving way, Duration patience);

}  // namespace weir::simulate
