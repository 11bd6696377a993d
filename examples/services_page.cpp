// services_page: a live page of what an app is doing: http://127.0.0.1:8080/weir/services.
#include <weir/app.hpp>
#include <weir/admin/admin.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>

using namespace weir;

struct Config {};
struct Database {
  explicit Database(const Config&) {}
  Task<Result<>> start() { co_return co_await sleep(100ms); }
};
struct Cache {};
struct Page {
  Page(http::Routes& routes, Database&, Optional<Cache>) {
    routes.get("/", [] { return http::text("Hello!\n"); });
  }
};

/// Cannot start, but says why.
struct Mail {
  Task<Result<>> start() { co_return fail(std::make_error_code(std::errc::connection_refused)); }
};
/// Waits for a disk that nobody provides.
struct Archive {
  Archive(Database&, const struct Disk&) {}
};
struct Disk {};

/// What is added while the app runs may wait, or fail by itself.
struct Extras {
  Extras(App& of, Scope& scope) : app(of) { scope.spawn(add()); }
  Task<> add() {
    co_await yield();
    app.per_core<Archive>();
    app.shared<Mail>();
    if (auto added = co_await app.apply(); !added) std::puts("not all of them run");
  }
  App& app;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  App app;
  app.shared<Config>();
  app.per_core<Database>();
  app.per_core<Cache>();
  app.per_core<Page>();
  app.on_core<Extras>(0);
  mount_admin(routes, app, {.title = "shop"});  // a real one: on a router for loopback alone
  serve_http(app, routes, {.endpoint = Endpoint::loopback(options.endpoint.port())});
  return app.run(options);
}
