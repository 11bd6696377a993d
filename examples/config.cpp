// config: a server that reads its settings from greeter.toml, from GREETER_... in the environment
// and from its command line. It reloads the file when the file changes. Try it:
//
//   GREETER_LISTEN=:9000 ./dev run config -- --greeting.text "Good morning" --runtime.cores 2
//   ./dev run config -- --help
#include <weir/config/reload.hpp>
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
inline constexpr std::array config::field_help<Settings>{
    config::FieldHelp{"listen", "address to listen on"}};

http::Response greet(const Greeting& greeting) {
  std::string text = greeting.text;
  for (const std::string& name : greeting.names) text += ", " + name;
  return http::text(text + "!\n");
}

Task<http::Response> count(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::to_status(body.error());
  co_return http::text(std::to_string(body->size()) + " bytes\n");
}

/// Runs on each core. Core 0 also watches the file.
Task<Result<>> serve(Scope& scope, config::Reloadable<Settings>& reloadable,
                     const http::Router& routes) {
  if (scope.loop().core() == 0) scope.spawn(reloadable.watch());
  const http::ServeOptions options{reloadable.current()->listen};
  co_return co_await http::serve(scope, routes, options);
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::from_main(argv, environment);
  sources.file = "greeter.toml";
  sources.prefix = "GREETER";
  OsPlatform platform;
  const auto first = config::load_or_exit<Settings>(platform.files(), sources);
  config::Reloadable<Settings> reloadable(first, sources, {.poll_interval = first.reload_every});
  http::Router routes;
  routes.get("/", [&] { return greet(reloadable.current()->greeting); });
  routes.post("/count", count, {.body_max = first.body_max.bytes()});
  return Runtime(platform, first.runtime)
      .run_on_each_core(serve, std::ref(reloadable), std::cref(routes));
}
