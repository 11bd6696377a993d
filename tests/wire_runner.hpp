// Many connections at once, each with bytes of its own cut into pieces of its own: what came back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"

namespace weir::tests {

/// What one connection sends. Before it sends a piece, the server has had the time to read those
/// before: it has answered somebody else who asked later.
struct WireJob {
  std::string_view bytes;         ///< outlives the run
  std::vector<std::size_t> cuts;  ///< where pieces end, ascending; none: all at once
};

/// How a connection went.
struct WireResult {
  std::string received;        ///< all of it, to the end
  std::size_t before_end = 0;  ///< so much of it came before this side ended its sending
  bool server_ended = false;   ///< it ended before this side had
  std::string failure;         ///< a reset, or silence; empty when it ended orderly
};

/// Sends each job on a connection of its own to 127.0.0.1:`port`, many at once. Where the last
/// answer announces no end, this side then ends its sending; in every case it waits for the
/// server's end. The server has one loop, and a route for GET /.
std::vector<WireResult> run_on_the_wire(std::uint16_t port, const std::vector<WireJob>& jobs);

/// What was received as responses, none of them to HEAD. Errors: as Client's, such as
/// Errc::end_of_stream where the last one is not whole.
Result<std::vector<Response>> read_responses(const std::string& received);

}  // namespace weir::tests
