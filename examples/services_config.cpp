// services_config: a service is made of its part of a file, and made anew when that changes, with
// whoever depends on it, while requests go on. A price that cannot be is refused, and nothing
// changes. ./dev run services_config -- --config menu.toml, then write `prices.coffee = 4` there.
#include <weir/app/config_service.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>
#include <weir/loop/os/os_platform.hpp>

using namespace weir;

struct Prices {
  unsigned coffee = 3, tea = 2;
};
struct Settings {
  Endpoint listen = Endpoint::any(8080);
  Prices prices;
  Duration reload_every = 2s;
  RuntimeOptions runtime;
};

/// Stands for what is expensive to make: a pool of connections, a model, a table.
struct Menu {
  explicit Menu(const Prices& of) : prices(of) {}
  Task<Result<>> start() {
    static_cast<void>(co_await sleep(10ms));
    if (prices.coffee > 100) co_return fail(Errc::limit_reached);
    co_return {};
  }
  const Prices prices;
};

struct Shop {
  Shop(const Menu& menu, http::Routes& routes) {
    routes.get("/coffee", [&menu] { return http::text(std::to_string(menu.prices.coffee)); });
    routes.get("/tea", [&menu] { return http::text(std::to_string(menu.prices.tea)); });
  }
};

/// Looks after the file for as long as the app runs.
struct Follower {
  Follower(Scope& scope, config::Live<Settings>& live) { scope.spawn(live.watch()); }
};

int main(int, char** argv, char** environment) {
  OsHost host;
  const auto sources = config::Sources::of_main(argv, environment);
  const auto first = config::load_or_exit<Settings>(host.files(), sources);
  config::Live<Settings> live(first, sources, {.period = first.reload_every});
  App app;
  http::Router routes;
  const config::LiveService menu(app, live, &Settings::prices, [](App& to, const Prices& part) {
    return to.shared([part] { return Menu(part); });
  });
  app.per_core<Shop>();
  app.on_core(0, [&live](Scope& scope) { return Follower(scope, live); });
  serve_http(app, routes, {.endpoint = first.listen});
  Runtime runtime(host, first.runtime);
  return app.run(runtime);
}
