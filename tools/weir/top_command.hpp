// Declares the verb `weir top`, which shows a running service in a terminal.
#pragma once

#include <string>

#include "tools/weir/top_view.hpp"
#include "weir/http/client/client.hpp"
#include "weir/task/task.hpp"

namespace CLI {
class App;
}

namespace weir::top {

/// The place of the admin pages, and the token for them.
struct Target {
  std::string base;   ///< "http://127.0.0.1:9090/weir/"
  std::string token;  ///< empty: none
};

/// Asks the admin pages once.
/// Returns: what they say; `error` is set if one of them does not answer as expected.
/// Cancel: returns early.
Task<Snapshot> ask(http::Client& client, const Target& target);

/// Adds the verb to `tool`, the parser of the whole command line. Parsing a command line with the
/// verb shows the service until SIGINT, or once, and sets `status`: 0, or 1 without an answer.
/// Lifetime: `status` outlives `tool`.
void add_command(CLI::App& tool, int& status);

}  // namespace weir::top
