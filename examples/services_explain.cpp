// services_explain: an app that explains why a service does not run yet, as text, DOT and JSON.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

struct Config {};
struct Database {
  explicit Database(const Config&) {}
  Task<Result<>> start() { co_return co_await sleep(200ms); }
};
struct Web {
  Web(Database&, const Config&, inject::Optional<struct Telemetry>) {}
};
struct Telemetry {};

/// Reports the state of its own app.
class Reporter {
 public:
  Reporter(App& app, Scope& scope) : app_(app), scope_(scope) {}
  Task<Result<>> start() {
    scope_.spawn(report());
    co_return {};
  }

 private:
  Task<> report() {
    std::fputs(app_.explain().to_text().c_str(), stderr);
    std::ignore = co_await sleep(300ms);
    std::fputs(app_.explain().to_dot().c_str(), stderr);
    std::fprintf(stderr, "%s\n", app_.explain().to_json().c_str());
  }

  App& app_;
  Scope& scope_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.shared<Config>();
  app.per_core<Database>();
  app.per_core<Web>();
  app.per_core<Telemetry>();
  app.per_core<Reporter>();
  return app.run(options);
}
