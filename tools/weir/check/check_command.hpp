// The verb `weir check URL`: protocol and slow-client cases against any HTTP/1.1 server.
#pragma once

namespace CLI {
class App;
}

namespace weir::check {

/// Adds the verb to `tool`, the parser of the whole command line. When that has been parsed and the
/// verb was given, `status` is the exit status of the process: 0 when no case failed, 1 when one
/// did, 2 for what is wrong on the command line and for a server that does not answer.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::check
