// The verb `weir top`: options, requests to the admin pages, and the terminal.
#include "tools/weir/top_command.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>

#include "weir/json.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::top {
namespace {

constexpr Duration answer_timeout = std::chrono::seconds(3);

struct Command {
  std::string url;
  std::string token_file;
  double seconds = 1;
  bool once = false;
};

/// Returns the status text of an answer that is none.
std::string describe(http::Status status) {
  if (status == http::Status::unauthorized) return "401: the service needs a --token-file";
  return std::to_string(http::code_of(status)) + ": this is no admin listener";
}

/// Reads one page. Returns why it could not be read; nothing for success.
template <class T>
Task<std::optional<std::string>> read_page(http::Client& client, const Target& target,
                                           std::string page, T& into) {
  http::ClientRequest request(http::Method::get, target.base + page + ".json");
  if (!target.token.empty()) request.add_header("Authorization", "Bearer " + target.token);
  auto sending = client.send(std::move(request));
  auto response = co_await timeout(answer_timeout, std::move(sending));
  if (!response) co_return response.error().message();
  if (response->status() != http::Status::ok) co_return describe(response->status());
  auto reading = response->body();
  const auto body = co_await timeout(answer_timeout, std::move(reading));
  if (!body) co_return body.error().message();
  constexpr json::ReadOptions lenient{.unknown_fields = json::UnknownFields::skip,
                                      .missing_fields = json::MissingFields::keep};
  if (auto read = json::read_into(into, *body, lenient); !read) {
    co_return page + ": " + read.error().message();
  }
  co_return std::nullopt;
}

/// Restores the terminal when the view ends.
class Terminal {
 public:
  Terminal() { write("\x1b[?1049h\x1b[?25l"); }
  ~Terminal() { write("\x1b[?25h\x1b[?1049l"); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static Screen size() {
    winsize window{};
    Screen screen{.colours = true};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
      screen.columns = window.ws_col;
      screen.lines = window.ws_row;
    }
    return screen;
  }
  /// Replaces the picture without clearing the screen first, which would flicker.
  static void show(const std::string& picture) {
    std::string text = "\x1b[H";
    for (const char each : picture) {
      if (each == '\n') text += "\x1b[K\r";
      text += each;
    }
    write(text + "\x1b[J");
  }

 private:
  static void write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
};

std::optional<Target> target_of(const Command& command, std::string& socket) {
  Target target;
  if (command.url.starts_with("unix:")) {
    socket = command.url.substr(5);
    target.base = "http://localhost/weir/";
  } else {
    target.base = command.url.contains("://") ? command.url : "http://" + command.url;
    while (target.base.ends_with('/')) target.base.pop_back();
    const std::size_t path = target.base.find('/', target.base.find("://") + 3);
    if (path == std::string::npos) target.base += "/weir";
    target.base += "/";
  }
  if (!command.token_file.empty()) {
    std::ifstream file(command.token_file);
    if (!std::getline(file, target.token)) return std::nullopt;
  }
  return target;
}

Task<> watch(Scope& scope, http::Client& client, const Target& target, const Command& command,
             int& status) {
  if (command.once) {
    const Snapshot snapshot = co_await ask(client, target);
    const std::string picture = draw(snapshot, {.columns = 200, .lines = 10'000});
    std::fputs(picture.c_str(), snapshot.error.empty() ? stdout : stderr);
    status = snapshot.error.empty() ? 0 : 1;
    co_return;
  }
  const Terminal terminal;
  const std::chrono::duration<double> interval(command.seconds);
  while (!scope.loop().draining()) {
    const Snapshot snapshot = co_await ask(client, target);
    Terminal::show(draw(snapshot, Terminal::size()));
    status = snapshot.error.empty() ? 0 : 1;
    if (!co_await sleep(std::chrono::duration_cast<Duration>(interval))) break;
  }
  status = 0;
}

int run(const Command& command) {
  std::string socket;
  const auto target = target_of(command, socket);
  if (!target) {
    std::fprintf(stderr, "%s: there is no token in it\n", command.token_file.c_str());
    return 2;
  }
  int status = 1;
  Runtime runtime({.cores = 1,
                   .pin = false,
                   .drain_timeout = std::chrono::milliseconds(10),
                   .announce = false});
  const int ended = runtime.run_on_each_core([&](Scope& scope) -> Task<> {
    http::ClientOptions options;
    options.unix_socket = socket;
    http::Client client(std::move(options));
    co_await watch(scope, client, *target, command, status);
  });
  return ended != 0 ? 1 : status;
}

}  // namespace

Task<Snapshot> ask(http::Client& client, const Target& target) {
  Snapshot snapshot;
  Routes routes;
  auto failed = co_await read_page(client, target, "overview", snapshot.overview);
  if (!failed) failed = co_await read_page(client, target, "cores", snapshot.cores);
  if (!failed) failed = co_await read_page(client, target, "pools", snapshot.pools);
  if (!failed) failed = co_await read_page(client, target, "slow_turns", snapshot.slow_turns);
  if (failed) {
    snapshot.error = target.base + ": " + *failed;
    co_return snapshot;
  }
  // A service without an observer of its requests has no such page.
  const auto no_routes = co_await read_page(client, target, "routes", routes);
  if (!no_routes) snapshot.routes = std::move(routes);
  co_return snapshot;
}

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb = tool.add_subcommand("top", "show a running service in the terminal");
  verb->add_option("url", command->url,
                   "its admin listener: http://127.0.0.1:9090 or unix:/run/admin.sock")
      ->required();
  verb->add_option("--token-file", command->token_file, "file whose first line is the token")
      ->check(CLI::ExistingFile);
  verb->add_option("--interval", command->seconds, "seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_flag("--once", command->once, "print one picture and end");
  verb->footer("Exit status: 0, or 1 if the service does not answer.");
  verb->callback([command, &status] { status = run(*command); });
}

}  // namespace weir::top
