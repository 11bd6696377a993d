// Lists the options of a verb of the tool inside a test.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace weir {

/// Returns the options of the verb that `add_command` adds, in the order of its help. Each line
/// has the names of an option and its default.
inline std::string list_options(void (*add_command)(CLI::App&, int&), const std::string& verb) {
  int status = -1;
  CLI::App tool;
  add_command(tool, status);
  std::string text;
  for (const CLI::Option* each : tool.get_subcommand(verb)->get_options()) {
    text += each->get_name(false, true);
    if (!each->get_default_str().empty()) text += " " + each->get_default_str();
    text += each->get_description().empty() ? " has no description\n" : "\n";
  }
  return text;
}

}  // namespace weir
