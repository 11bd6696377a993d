// Declares the verb `weir doctor`, which says what this machine takes from a service.
#pragma once

namespace CLI {
class App;
}

namespace weir::doctor {

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb makes the checks, prints the report, and sets `status`: 0 well, 1 something limits the
/// service, 2 it cannot run or the configuration cannot be read.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::doctor
