// Declares the verb `weir bench URL`, which puts load on an HTTP/1.1 server and verifies every
// response.
#pragma once

namespace CLI {
class App;
}

namespace weir::bench {

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb runs it and sets `status` to the exit status of the process. The status is 0 if every
/// request was answered correctly and 1 if not. It is 2 if the command line is wrong, or if the
/// process may not open enough connections.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::bench
