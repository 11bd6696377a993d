// simulated [SEED]: tests a service in the World, over an hour of virtual time, with a new seed for
// each run.
#include <weir/sim/world.hpp>

#include <cstdio>
#include <weir/http.hpp>

using namespace weir;
const RuntimeOptions one{.cores = 1, .announce = false};

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
  return Runtime(platform, one)
      .run_on_each_core(http::serve, std::cref(routes), http::ServeOptions{Endpoint::any(80)});
}

Task<Result<std::string>> ask(Endpoint server) {
  auto stream = co_await tcp::connect(server);
  if (!stream) co_return std::unexpected(stream.error());
  auto sent = co_await stream->write("GET /lease HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  if (!sent) co_return std::unexpected(sent.error());
  std::string answer;
  while (auto bytes = co_await stream->read()) answer += bytes->text();
  co_return answer.size() < 12 ? answer : answer.substr(9, 3);  // its status
}

// The test: the statuses of three requests: after a second, 30 minutes later and 31 minutes later.
Task<> test(Scope&, Endpoint server, std::string& heard) {
  const Duration pauses[] = {1s, 30min, 31min};
  for (const Duration pause : pauses) {
    if (auto slept = co_await sleep(pause); !slept) co_return;
    auto status = co_await ask(server);
    heard += (status ? *status : status.error().message()) + " ";
  }
}

int main(int argc, char** argv) {
  sim::World world({.seed = argc > 1 ? std::stoull(argv[1]) : sim::fresh_seed(),
                    .replay = std::string(argv[0]) + " "});
  std::string heard;
  sim::Host& server = world.host("server");
  server.start_service(serve);
  world.host("client").start([&](loop::Platform& platform) {
    return Runtime(platform, one).run_on_each_core(test, server.address(80), std::ref(heard));
  });
  const sim::WorldReport report = world.run_until_done(2h);  // also checks that nothing is left
  std::printf("heard %s\n%s", heard.c_str(), report.text().c_str());
  return report.ok() && heard == "200 409 200 " ? 0 : 1;
}
