// simulated [SEED]: tests a service in the World, over an hour of virtual time, with a new seed for
// each run.
#include <weir/http_testing.hpp>

#include <cstdio>
#include <weir/http.hpp>

using namespace weir;

// The service: the first client gets a lease for an hour.
Task<http::Response> take(Instant& leased_until) {
  const Instant now = (co_await this_context()).loop->now();
  if (now < leased_until) co_return http::Response(http::Status::conflict);
  leased_until = now + 1h;
  co_return http::text("yours\n");
}

int serve(loop::Platform& platform) {
  Instant leased_until{};
  http::Router routes;
  routes.get("/lease", [&leased_until] { return take(leased_until); });
  return http::run(routes, platform);
}

// The test: the statuses of three requests: at the start, 30 minutes later and 31 minutes later.
int main(int argc, char** argv) {
  sim::World world({.seed = argc > 1 ? std::stoull(argv[1]) : sim::fresh_seed(),
                    .replay = std::string(argv[0]) + " "});
  world.host("server").start_service(serve);
  http::TestClient client(world, "http://server");
  std::string heard;
  for (const Duration pause : {Duration(0s), Duration(30min), Duration(31min)}) {
    client.advance(pause);
    heard += std::to_string(http::code_of(client.get("/lease").status())) + " ";
  }
  const sim::WorldReport report = world.run_until_done(2h);  // also checks that nothing is left
  std::printf("heard %s\n%s", heard.c_str(), report.text().c_str());
  return report.ok() && heard == "200 409 200 " ? 0 : 1;
}
