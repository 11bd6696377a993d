// Runs a verb of the tool inside a test, as a shell does.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace weir {

/// Runs `weir VERB ARGUMENTS...` with the verb that `add_command` adds. Stores everything that
/// the verb printed in `output`, or the error of a command line that cannot be parsed.
/// Returns: the exit status.
inline int run_command(void (*add_command)(CLI::App&, int&), const std::string& verb,
                       std::vector<std::string> arguments, std::string& output) {
  int status = -1;
  CLI::App tool;
  add_command(tool, status);
  std::ranges::reverse(arguments);  // CLI11 takes the arguments in reverse order
  arguments.push_back(verb);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string parse_error;
  try {
    tool.parse(arguments);
  } catch (const CLI::ParseError& error) {
    status = 2;
    parse_error = error.what();
  }
  output = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  output += parse_error;
  return status;
}

}  // namespace weir
