// The verb `weir doctor`: options and output.
#include "tools/weir/doctor_command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "weir/doctor/config_demands.hpp"
#include "weir/doctor/doctor.hpp"
#include "weir/loop/os/os_platform.hpp"

namespace weir::doctor {
namespace {

struct Command {
  std::string config;
  std::string root;
  bool json = false;
  bool verbose = false;
  bool running = false;
  unsigned cores = 0;
  std::size_t connections = 0;
  unsigned timeout_seconds = 3;
};

int run(const Command& command) {
  DoctorOptions options;
  if (!command.config.empty()) {
    OsPlatform platform;
    config::Sources sources;
    sources.arguments = {"--config", command.config};  // names a file that must exist
    auto demands = demands_of(config::read_file(platform.files(), sources));
    if (!demands) {
      std::fprintf(stderr, "%s\n", demands.error().message().c_str());
      return 2;
    }
    options = std::move(*demands);
  }
  if (command.cores != 0) options.demands.cores = command.cores;
  if (command.connections != 0) options.demands.connections_max = command.connections;
  options.root = command.root;
  options.running = command.running;
  options.timeout = std::chrono::seconds(command.timeout_seconds);
  const DoctorReport report = examine(options);
  const std::string text = command.json
                               ? report.to_json() + "\n"
                               : report.to_text(command.verbose ? Notes::shown : Notes::hidden);
  std::fputs(text.c_str(), stdout);
  return report.exit_status();
}

}  // namespace

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb = tool.add_subcommand("doctor", "say what this machine takes from a service");
  verb->add_option("--for", command->config, "a configuration file (TOML) of the service");
  verb->add_option("--cores", command->cores, "loops that the service runs");
  verb->add_option("--connections", command->connections, "connections of its clients");
  verb->add_flag("--running", command->running, "the service runs: its addresses are in use");
  verb->add_option("--timeout", command->timeout_seconds, "seconds for each name and store")
      ->check(CLI::Range(1, 60));
  verb->add_flag("--json", command->json, "print the report as JSON, with notes");
  verb->add_flag("--verbose", command->verbose, "also print notes, which concern no demand");
  verb->add_option("--root", command->root, "prefix of /proc, /sys and /etc: another machine")
      ->check(CLI::ExistingDirectory);
  verb->footer("Exit status: 0 well, 1 something limits the service, 2 it cannot run.");
  verb->callback([command, &status] { status = run(*command); });
}

}  // namespace weir::doctor
