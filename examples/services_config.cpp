// services_config: makes a service from its section of a file. A change of the section replaces the
// service and its dependants while requests go on. An invalid price is refused and changes nothing.
// ./dev run services_config -- --config menu.toml, then write `prices.coffee = 4` into the file.
#include <weir/app/http_server.hpp>
#include <weir/app/reloadable_service.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>
#include <weir/loop/os/os_platform.hpp>

using namespace weir;

struct Prices {
  unsigned coffee = 3, tea = 2;
};
struct Settings {
  Endpoint listen = Endpoint::any(8080);
  http::PlainHttp2 http2_plain = http::PlainHttp2::off;
  Prices prices;
  Duration reload_every = 2s;
  RuntimeOptions runtime;
};

/// Stands for an expensive object: a pool of connections, a model, a table.
struct Menu {
  explicit Menu(const Prices& of) : prices(of) {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(10ms);
    if (prices.coffee > 100) co_return fail(Errc::limit_reached);
    co_return {};
  }
  const Prices prices;
};

struct Shop {
  Shop(const Menu& menu, http::ServiceRoutes& routes) {
    routes.get("/coffee", [&menu] { return http::text(std::to_string(menu.prices.coffee)); });
    routes.get("/tea", [&menu] { return http::text(std::to_string(menu.prices.tea)); });
  }
};

/// Watches the file while the app runs.
struct Follower {
  Follower(Scope& scope, config::Reloadable<Settings>& file) { scope.spawn(file.watch()); }
};

int main(int, char** argv, char** environment) {
  OsPlatform platform;
  const auto sources = config::Sources::from_main(argv, environment);
  const auto first = config::load_or_exit<Settings>(platform.files(), sources);
  config::Reloadable<Settings> reloadable(first, sources, {.poll_interval = first.reload_every});
  App app;
  http::Router routes;
  const config::ReloadableService menu(
      app, reloadable, &Settings::prices,
      [](App& to, const Prices& part) { return to.shared([part] { return Menu(part); }); });
  app.per_core<Shop>();
  app.on_core(0, [&reloadable](Scope& scope) { return Follower(scope, reloadable); });
  serve_http(app, routes, {.endpoint = first.listen, .plain_http2 = first.http2_plain});
  Runtime runtime(platform, first.runtime);
  return app.run(runtime);
}
