// The verb `weir serve`: options, routes and the access log.
#include "tools/weir/serve_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/server/serve.hpp"
#include "weir/os/detail/io/line_output.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls/server.hpp"
#include "weir/web/files/files.hpp"
#include "weir/web/middleware/access_log.hpp"

namespace weir::serve {
namespace {

struct Command {
  std::string folder;
  bool listing = false;
  bool spa = false;
  bool dotfiles = false;
  bool follow_links = false;
};

/// Returns middleware that writes a line for each request to standard output. A line is lost if the
/// reader of a pipe has stopped.
http::AccessLog access_log() {
  auto out = std::make_shared<os::LineWriter>(STDOUT_FILENO);
  const auto write = [out](std::string_view line) {
    static_cast<void>(out->write(line, Duration::zero()));
  };
  return http::access_log(write, {.format = http::AccessLogFormat::common});
}

/// Returns the options of the server from the arguments that the verb does not know.
tls::ProgramOptions program_options(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "weir serve");
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  return tls::ProgramOptions::from_args(static_cast<int>(pointers.size()), pointers.data());
}

int run(const Command& command, std::vector<std::string> more) {
  const tls::ProgramOptions options = program_options(std::move(more));
  http::FilesOptions files;
  files.listing = command.listing;
  if (command.spa) files.spa_fallback = files.index;
  files.dotfiles = command.dotfiles;
  files.follow_links = command.follow_links;
  files.precompressed = true;
  http::Router router = http::files(command.folder, std::move(files));
  router.use(access_log());
  const http::ServeOptions serving{.endpoint = options.endpoint, .tls = options.tls};
  return Runtime(options).run_on_each_core(http::serve, std::cref(router), serving);
}

}  // namespace

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb = tool.add_subcommand("serve", "serve the files of a folder over HTTP or HTTPS");
  verb->add_option("folder", command->folder, "the folder")
      ->required()
      ->check(CLI::ExistingDirectory);
  verb->add_flag("--listing", command->listing, "list the files of folders without index.html");
  verb->add_flag("--spa", command->spa, "answer unknown paths without a dot with /index.html");
  verb->add_flag("--dotfiles", command->dotfiles, "serve names that begin with a dot too");
  verb->add_flag("--follow-links", command->follow_links,
                 "follow relative symbolic links that stay inside the folder");
  verb->footer(
      "More options: --port, --address, --cores, --backend, --tls-self-signed, --tls-cert,\n"
      "--tls-key. NAME.br, NAME.zst and NAME.gz are sent to clients that accept these codings.\n"
      "Standard output has a line for each request.");
  verb->allow_extras();
  verb->callback([command, verb, &status] { status = run(*command, verb->remaining()); });
}

}  // namespace weir::serve
