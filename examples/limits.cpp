// limits: a server with configured limits, which prints how much memory its peers can make it hold.
// Try it, and attack it, for instance with slowhttptest:
//
//   ./dev run limits -- --limits.connections_max 500 --limits.body_max 65536
//   ./dev run limits -- --help
#include <iostream>

#include <weir/config/config.hpp>
#include <weir/http.hpp>
#include <weir/http/server/limits.hpp>
#include <weir/loop/os/os_platform.hpp>

using namespace weir;

struct Settings {
  Endpoint listen = Endpoint::any(8080);
  http::PlainHttp2 http2_plain = http::PlainHttp2::off;
  http::Limits limits = {.body_max = 64 * 1024, .connections_max = 1000};
  RuntimeOptions runtime;
};

http::Response large() {
  return http::text(std::string(200'000, 'x'));
}

Task<http::Response> count(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::to_status(body.error());
  co_return http::text(std::to_string(body->size()) + " bytes\n");
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::from_main(argv, environment);
  sources.prefix = "LIMITS";
  OsPlatform platform;
  const auto settings = config::load_or_exit<Settings>(platform.files(), sources);
  Runtime runtime(platform, settings.runtime);
  http::MemoryBoundOptions more;
  more.cores = static_cast<unsigned>(runtime.core_count());
  more.connections_max = platform.descriptor_limit().descriptors_max;
  more.handler_bytes = 256 * 1024;  // the size of large()'s answer, with room
  const http::MemoryBound bound = http::memory_bound(settings.limits, more);
  std::cerr << "limits: " << bound.to_text() << "\n";
  http::Router routes;
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/large", large);
  routes.post("/count", count);
  routes.get("/bound", [&bound] { return http::text(std::to_string(bound.total())); });
  routes.get("/report", [&runtime] { return http::text(runtime.report().to_text()); });
  const http::ServeOptions serving{
      .endpoint = settings.listen, .limits = settings.limits, .plain_http2 = settings.http2_plain};
  return runtime.run_on_each_core(http::serve, std::cref(routes), serving);
}
