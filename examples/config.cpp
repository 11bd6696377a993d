// config: a server that is told what to do by greeter.toml, by GREETER_... in the environment and
// by its command line, and that follows the file while it runs. Try it:
//
//   GREETER_LISTEN=:9000 ./dev run config -- --greeting.text "Good morning" --runtime.cores 2
//   ./dev run config -- --help
#include <weir/app/config_live.hpp>
#include <weir/http.hpp>
#include <weir/loop/os/os_platform.hpp>

using namespace weir;

struct Greeting {
  std::string text = "Hello";
  std::vector<std::string> names = {"World"};
};
struct Settings {
  Endpoint listen = Endpoint::any(8080);
  Greeting greeting;
  ByteSize body_max = 64_KiB;
  Duration reload_every = 2s;
  RuntimeOptions runtime;
};

template <>
inline constexpr std::array config::notes<Settings>{config::Note{"listen", "where to serve"}};

http::Response greet(const Greeting& greeting) {
  std::string text = greeting.text;
  for (const std::string& name : greeting.names) text += ", " + name;
  return http::text(text + "!\n");
}

Task<http::Response> count(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::status_for(body.error());
  co_return http::text(std::to_string(body->size()) + " bytes\n");
}

/// On each core; one of them looks after the file.
Task<Result<>> serve(Scope& scope, config::Live<Settings>& live, const http::Router& routes) {
  if (scope.loop().core() == 0) scope.spawn(live.watch());
  co_return co_await http::serve(scope, routes, live.now()->listen);
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::of_main(argv, environment);
  sources.file = "greeter.toml";
  sources.prefix = "GREETER";
  OsHost host;
  const auto first = config::load_or_exit<Settings>(host.files(), sources);
  config::Live<Settings> live(first, sources, {.period = first.reload_every});
  http::Router routes;
  routes.get("/", [&] { return greet(live.now()->greeting); });
  routes.post("/count", count, {.body_max = first.body_max.bytes()});
  return Runtime(host, first.runtime).run_on_each_core(serve, std::ref(live), std::cref(routes));
}
