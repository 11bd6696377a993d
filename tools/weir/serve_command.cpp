// The verb `weir serve`: options, routes and the access log.
#include "tools/weir/serve_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/os/detail/io/line_output.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls/server.hpp"
#include "weir/web/files/files.hpp"

namespace weir::serve {
namespace {

struct Command {
  std::string folder;
  bool listing = false;
  bool spa = false;
  bool dotfiles = false;
  bool follow_links = false;
};

/// Writes one line for each request to standard output.
class AccessLog {
 public:
  Task<http::Response> operator()(http::Request& request, http::Next next) const {
    http::Response response = co_await next(request);
    Loop& loop = *(co_await this_context()).loop;
    constexpr Duration wait_max = std::chrono::milliseconds(100);
    static_cast<void>(
        out_->write(access_line(request, response, loop.platform().wall_time()), wait_max));
    co_return response;
  }

 private:
  std::shared_ptr<os::LineWriter> out_ = std::make_shared<os::LineWriter>(STDOUT_FILENO);
};

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
  router.use(AccessLog());
  const http::ServeOptions serving{.endpoint = options.endpoint, .tls = options.tls};
  return Runtime(options).run_on_each_core(http::serve, std::cref(router), serving);
}

}  // namespace

std::string access_line(const http::Request& request, const http::Response& response,
                        WallTime time) {
  const http::Date date(time);  // "Sun, 06 Nov 1994 08:49:37 GMT"
  const std::string_view text = date.text();
  std::string line = request.peer_address().to_string();
  line.resize(line.rfind(':') == line.npos ? line.size() : line.rfind(':'));
  line.append(" - - [").append(text.substr(5, 2)).append("/").append(text.substr(8, 3));
  line.append("/").append(text.substr(12, 4)).append(":").append(text.substr(17, 8));
  line.append(" +0000] \"").append(request.method_text()).append(" ");
  line.append(request.head().target());
  constexpr std::string_view versions[] = {" HTTP/1.0", " HTTP/1.1", " HTTP/2"};
  line.append(versions[static_cast<std::size_t>(request.version())]).append("\" ");
  line.append(std::to_string(http::code_of(response.status()))).append(" ");
  const auto length = response.body().length();
  const bool has_body = request.method() != http::Method::head && length && *length > 0;
  return line.append(has_body ? std::to_string(*length) : "-");
}

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
                 "follow symbolic links that stay inside the folder");
  verb->footer(
      "More options: --port, --address, --cores, --backend, --tls-self-signed, --tls-cert,\n"
      "--tls-key. NAME.br, NAME.zst and NAME.gz are sent to clients that accept these codings.\n"
      "Standard output has a line for each request.");
  verb->allow_extras();
  verb->callback([command, verb, &status] { status = run(*command, verb->remaining()); });
}

}  // namespace weir::serve
