// logs: every record that is logged for a request has the request's id. Levels are set by name,
// even while the server runs. ./dev run logs -- --log.level debug --log.format json, then
// curl -H "X-Request-Id: 7" localhost:8080/greet/ann; curl -X PUT localhost:8080/levels/store/trace
#include <weir/config/config.hpp>
#include <weir/http.hpp>
#include <weir/log/log_service.hpp>
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
    std::ignore = co_await sleep(1ms);
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

http::Response set_level(LogService& logs, std::string_view name, std::string_view wanted) {
  const auto level = parse_log_level(wanted);
  if (!level) return http::Status::bad_request;
  logs.set_level(name, *level);
  return http::Response(http::Status::no_content);
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::from_main(argv, environment);
  sources.prefix = "LOGS";
  OsPlatform platform;
  const auto settings = config::load_or_exit<Settings>(platform.files(), sources);
  LogService logs(platform, settings.log);  // outlives the runtime
  const Logger log = logs.logger("http");
  const Store store(logs.logger("store"));
  http::Router routes;
  routes.trust_id_header("X-Request-Id");  // numbers the requests that lack it
  routes.get("/greet/{name}", [&](std::string name) { return greet(log, store, name); });
  routes.put("/levels/{name}/{level}", [&](std::string_view name, std::string_view level) {
    return set_level(logs, name, level);
  });
  return Runtime(platform, settings.runtime)
      .run_on_each_core(http::serve, std::cref(routes), http::ServeOptions{settings.listen});
}
