// services_page: serves a live page of an app's services: http://127.0.0.1:8080/weir/services.
#include <weir/admin/admin.hpp>
#include <weir/app.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>
#include <weir/tls.hpp>

using namespace weir;

struct Config {};
struct Database {
  explicit Database(const Config&) {}
  Task<Result<>> start() { co_return co_await sleep(100ms); }
};
struct Cache {};
struct Page {
  Page(http::ServiceRoutes& routes, Database&, inject::Optional<Cache>) {
    routes.get("/", [] { return http::text("Hello!\n"); });
  }
};

/// Fails to start, with an error.
struct Mail {
  Task<Result<>> start() { co_return fail(std::make_error_code(std::errc::connection_refused)); }
};
/// Waits for a disk that no service provides.
struct Archive {
  Archive(Database&, const struct Disk&) {}
};
struct Disk {};

/// Adds services while the app runs. An added service may wait or fail without ending the app.
struct Extras {
  Extras(App& owner, Scope& scope) : app(owner) { scope.spawn(add()); }
  Task<> add() {
    co_await yield();
    app.per_core<Archive>();
    app.shared<Mail>();
    if (auto added = co_await app.apply(); !added) std::puts("some services do not run");
  }
  App& app;
};

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  http::Router routes;
  App app;
  app.shared<Config>();
  app.per_core<Database>();
  app.per_core<Cache>();
  app.per_core<Page>();
  app.on_core<Extras>(0);
  mount_admin(routes, app, {.title = "shop"});  // mount it on a loopback router only
  options.endpoint = Endpoint::loopback(options.endpoint.port());
  serve_http(app, routes, options.serve_options());
  return app.run(options);
}
