// The verb `weir bench URL`: puts load on an HTTP/1.1 server and verifies every response.
#pragma once

namespace CLI {
class App;
}

namespace weir::bench {

/// Adds the verb to `tool`, the parser of the whole command line. When that has been parsed and the
/// verb was given, `status` is the exit status of the process: 0 when every request was answered
/// rightly, 1 when not, 2 for what is wrong on the command line.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::bench
