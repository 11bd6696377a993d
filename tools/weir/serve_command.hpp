// Declares the verb `weir serve FOLDER`, which serves the files of a folder.
#pragma once

namespace CLI {
class App;
}

namespace weir::serve {

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb serves until the process is told to stop, and sets `status` to the exit status of the
/// process. The status is 2 if the folder does not exist.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::serve
