// logs: what is logged for a request says which one it was, whoever logs it; levels are set by
// name, also while it runs. ./dev run logs -- --log.level debug --log.format json, then
// curl -H "X-Request-Id: 7" localhost:8080/greet/ann; curl -X PUT localhost:8080/levels/store/trace
#include <weir/config/config.hpp>
#include <weir/log/log_service.hpp>
#include <weir/http.hpp>
#include <weir/loop/os/os_platform.hpp>

using namespace weir;

struct Settings {
  Endpoint listen = Endpoint::any(8080);
  LogOptions log;
  RuntimeOptions runtime;
};

class Store {
 public:
  explicit Store(Logger log) : log_(std::move(log)) { log_.info("open"); }
  Task<std::string> greeting_for(std::string_view name) const {
    log_.debug("looks for a greeting", field("name", name));
    static_cast<void>(co_await sleep(1ms));
    log_.trace("read", field("bytes", name.size()));
    co_return "Hello, " + std::string(name) + "!\n";
  }

 private:
  Logger log_;
};

Task<http::Response> greet(const Logger& log, const Store& store, std::string name) {
  const std::string text = co_await store.greeting_for(name);
  log.info("greeted", field("name", name), field("bytes", text.size()));
  co_return http::text(text);
}

http::Response set_level(Logs& logs, std::string_view name, std::string_view wanted) {
  const auto level = log_level(wanted);
  if (!level) return http::Status::bad_request;
  logs.set_level(name, *level);
  return http::status(204);
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::of_main(argv, environment);
  sources.prefix = "LOGS";
  OsHost host;
  const auto settings = config::load_or_exit<Settings>(host.files(), sources);
  Logs logs(host, settings.log);  // made before the runtime, and gone after it
  const Logger log = logs.logger("http");
  const Store store(logs.logger("store"));
  http::Router routes;
  routes.trust_id_field("X-Request-Id");  // else, or where there is none, they are numbered
  routes.get("/greet/{name}", [&](std::string name) { return greet(log, store, name); });
  routes.put("/levels/{name}/{level}", [&](std::string_view name, std::string_view level) {
    return set_level(logs, name, level);
  });
  return Runtime(host, settings.runtime)
      .run_on_each_core(http::serve, std::cref(routes), settings.listen);
}
