// The main function of the command-line tool `weir`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tools/weir/bench_command.hpp"
#include "tools/weir/check/check_command.hpp"
#include "tools/weir/doctor_command.hpp"
#include "tools/weir/serve_command.hpp"
#include "tools/weir/top_command.hpp"
#include "weir/base/version.hpp"

int main(int argc, char** argv) {
  int status = 0;
  CLI::App tool("Weir's tool");
  tool.require_subcommand(1);
  tool.set_version_flag("--version", std::string(weir::version()));
  weir::bench::add_command(tool, status);
  weir::check::add_command(tool, status);
  weir::doctor::add_command(tool, status);
  weir::serve::add_command(tool, status);
  weir::top::add_command(tool, status);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tool.exit(error) == 0 ? 0 : 2;
  }
  return status;
}
