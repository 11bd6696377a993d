// services_faked: the test of services_lease, with its services, a fake store and a fake clock. The
// server and the client are in one process. The test uses only memory and takes no real time.
#include "examples/services_lease.hpp"

#include <cstdio>
#include <vector>
#include <weir/http_testing.hpp>

using namespace weir;

struct ListStore : Store {
  explicit ListStore(std::vector<std::string>& list) : names(list) {}
  Task<Result<>> keep(std::string name) override {
    if (name == "bob") co_return fail(std::make_error_code(std::errc::no_space_on_device));
    names.push_back(std::move(name));
    co_return {};
  }
  std::vector<std::string>& names;
};

/// Ann takes the lease and Eve is refused. The store fails an hour later, and Ann takes it again.
int main() {
  FakeClock clock;
  std::vector<std::string> kept;
  sim::World world({.jitter = sim::no_jitter});
  world.host("server").start_service([&](loop::Platform& platform) {
    http::Router router;
    App app;
    wire(app, router, {.endpoint = Endpoint::any(80)});
    app.fake<Clock>([clock] { return FakeClock(clock); });
    app.fake<Store>([&kept] { return ListStore(kept); });
    return app.run(platform);
  });
  http::TestClient client(world, "http://server");
  std::string heard;
  for (const std::string name : {"ann", "eve", "bob", "ann"}) {
    const auto response = client.post("/lease/" + name, "text/plain", "");
    heard += std::to_string(http::code_of(response.status())) + " ";
    if (name != "ann") clock.advance(1h);
  }
  const sim::WorldReport report = world.run_until_done(1h);
  std::printf("heard %s, kept %zu\n", heard.c_str(), kept.size());
  return report.ok() && heard == "200 409 500 200 " && kept.size() == 2 ? 0 : 1;
}
