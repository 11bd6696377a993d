// The verb `weir serve`: options, routes and the access log.
#include "tools/weir/serve_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/server/program_options.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/os/detail/io/line_output.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/web/files/files.hpp"
#include "weir/web/middleware/access_log.hpp"
#include "weir/web/protection/allowed_hosts.hpp"
#include "weir/web/protection/security_headers.hpp"

namespace weir::serve {
namespace {

struct Command {
  std::string folder;
  bool listing = false;
  bool spa = false;
  bool dotfiles = false;
  bool follow_links = false;
  bool precompressed = false;
  std::vector<std::string> hosts;  // besides localhost and IP addresses
  bool any_host = false;
};

constexpr const char* address_option = "--address";

/// Returns middleware that writes a line for each request to standard output. A line is lost if the
/// reader of a pipe has stopped.
http::AccessLog access_log() {
  auto out = std::make_shared<os::LineWriter>(STDOUT_FILENO);
  const auto write = [out](std::string_view line) {
    static_cast<void>(out->write(line, Duration::zero()));
  };
  return http::access_log(write, {.format = http::AccessLogFormat::common});
}

/// Returns middleware that tells browsers to take each file as what its media type says.
http::SecurityHeaders no_sniff() {
  http::SecurityOptions options;
  for (std::string* const each :
       {&options.content_security_policy, &options.frame_options, &options.referrer_policy,
        &options.cross_origin_opener_policy, &options.cross_origin_resource_policy}) {
    each->clear();  // the site may have another policy
  }
  options.strict_transport = Duration::zero();
  return http::security_headers(options);
}

/// Returns an error text for CLI11 if the text is no host.
std::string host_error(const std::string& text) {
  try {
    std::ignore = http::allowed_hosts({.hosts = {text}});
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

bool has_address(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& each) {
    return each == address_option || each.starts_with(std::string(address_option) + "=");
  });
}

/// Returns the options of the server from the arguments that the verb does not know. The server
/// listens on loopback only, unless they have an address.
http::ProgramOptions program_options(std::vector<std::string> arguments) {
  if (!has_address(arguments)) arguments.insert(arguments.end(), {address_option, "127.0.0.1"});
  arguments.insert(arguments.begin(), "weir serve");
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  return http::ProgramOptions::from_args(static_cast<int>(pointers.size()), pointers.data());
}

int run(const Command& command, std::vector<std::string> more) {
  const http::ProgramOptions options = program_options(std::move(more));
  http::FilesOptions files;
  files.listing = command.listing;
  if (command.spa) files.spa_fallback = files.index;
  files.dotfiles = command.dotfiles;
  files.follow_links = command.follow_links;
  files.precompressed = command.precompressed;
  http::Router router = http::files(command.folder, std::move(files));
  router.use(access_log());
  router.use(no_sniff());
  if (!command.any_host) {
    std::vector<std::string> hosts = command.hosts;
    hosts.emplace_back("localhost");
    const auto addresses = os::is_loopback(options.endpoint) ? http::HostAddresses::loopback
                                                             : http::HostAddresses::all;
    router.use(http::allowed_hosts({.hosts = std::move(hosts), .addresses = addresses}));
  }
  return Runtime(options).run_on_each_core(http::serve, std::cref(router), options.serve_options());
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
  verb->add_flag("--precompressed", command->precompressed,
                 "send NAME.br, NAME.zst and NAME.gz in place of NAME to clients that accept these "
                 "codings, unless they are older");
  verb->add_option("--host", command->hosts,
                   "name of this server, besides localhost and IP addresses (may be repeated); "
                   "a request for another host gets 421")
      ->check(host_error)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_flag("--any-host", command->any_host, "answer requests for any host");
  verb->footer(
      "The server listens on 127.0.0.1; --address :: or --address 0.0.0.0 opens it to other\n"
      "machines. More options: --port, --cores, --backend, --http2-plain, --tls-self-signed,\n"
      "--tls-cert, --tls-key.\n"
      "Standard output has a line for each request.");
  verb->allow_extras();
  verb->callback([command, verb, &status] { status = run(*command, verb->remaining()); });
}

}  // namespace weir::serve
