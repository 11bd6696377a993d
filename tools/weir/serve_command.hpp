// Declares the verb `weir serve FOLDER`, which serves the files of a folder, and its access log.
#pragma once

#include <string>

#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace CLI {
class App;
}

namespace weir::serve {

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb serves until the process is told to stop, and sets `status` to the exit status of the
/// process. The status is 2 if the folder does not exist.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

/// Returns a line of an access log in the Common Log Format, without a newline. The number of bytes
/// is that of the body, or "-" if there is none or if it is unknown.
std::string access_line(const http::Request& request, const http::Response& response,
                        WallTime time);

}  // namespace weir::serve
