// Declares the verb `weir check URL`, which runs protocol and slow-client cases against an
// HTTP/1.1 server.
#pragma once

namespace CLI {
class App;
}

namespace weir::check {

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb runs it and sets `status` to the exit status of the process. The status is 0 if no case
/// failed and 1 if one did. It is 2 if the command line is wrong, or if the server does not
/// answer.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::check
