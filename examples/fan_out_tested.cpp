// fan_out_tested: tests fan_out in a World, with shops that are slow, gone or answer garbage.
#include "examples/fan_out.hpp"

#include <cstdio>
#include <weir/http_testing.hpp>

using namespace weir;

const std::string good =
    "HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"shop\":\"any\",\"cents\":250}";

int proxy(loop::Platform& platform) {
  http::Router router;
  App app;
  wire(app, router, Shops(), Endpoint::any(80));
  return app.run(platform);
}

/// Returns true if the proxy has this status when the southern shop sends these bytes.
bool answers(int status, const std::string& bytes, Duration delay = {}) {
  sim::World world({.jitter = {.slow_segment = 0}});  // no segment takes longer than 2 ms
  world.host("north").start_service(http::raw_server(good));
  world.host("south").start_service(http::raw_server(bytes, delay));
  world.host("proxy").start_service(proxy);
  http::TestClient client(world, "http://proxy");
  return client.get("/prices").status() == status && world.run_until_done(1h).ok();
}

int main() {
  const bool passed = answers(200, good) && answers(200, good, 1s) && answers(504, good, 3s) &&
                      answers(502, "") && answers(502, "garbage") &&
                      answers(502, "HTTP/1.1 200 OK\r\n\r\nno JSON") &&
                      answers(502, good.substr(0, good.size() - 1));
  std::printf("%s\n", passed ? "passed" : "failed");
  return passed ? 0 : 1;
}
