// Sends bytes in pieces on many connections at the same time and collects the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"

namespace weir::tests {

/// A WireInput is what one connection sends. The runner gives the server time to read a piece
/// before it sends the next one. It waits for the server's answer to a later request on another
/// connection.
struct WireInput {
  std::string_view bytes;         ///< must outlive the run
  std::vector<std::size_t> cuts;  ///< ends of the pieces, ascending; empty for one piece
};

/// A WireResult is the outcome of one connection.
struct WireResult {
  std::string received;        ///< all bytes up to the end
  std::size_t before_end = 0;  ///< bytes received before the client ended its sending
  bool server_ended = false;   ///< True if the server ended the connection first
  std::string failure;         ///< a reset or a timeout; empty after an orderly end
};

/// Sends each input on a connection of its own to 127.0.0.1:`port`, many at the same time. If the
/// last answer announces no end, the client then ends its sending. The client always waits for
/// the server's end. The server must have one loop and a route for GET /.
std::vector<WireResult> run_wire_inputs(std::uint16_t port, const std::vector<WireInput>& inputs);

/// Parses `received` as responses, none of them to HEAD.
/// Errors: those of Client, such as Errc::end_of_stream if the last response is incomplete.
Result<std::vector<Response>> read_responses(const std::string& received);

}  // namespace weir::tests
