// simulated [SEED]: a service tested in the World: an hour of its life in a moment, others each
// time.
#include <weir/sim/world.hpp>

#include <cstdio>
#include <weir/http.hpp>

using namespace weir;
const RuntimeOptions one{.cores = 1, .announce = false};

// The service: whoever comes first has the lease for an hour.
Task<http::Response> take(Instant& leased_until) {
  const Instant now = (co_await this_context()).loop->now();
  if (now < leased_until) co_return http::status(409);
  leased_until = now + 1h;
  co_return http::text("yours\n");
}

int serve(Host& host) {
  Instant leased_until{};
  http::Router routes;
  routes.get("/lease", [&leased_until] { return take(leased_until); });
  return Runtime(host, one).run_on_each_core(http::serve, std::cref(routes), Endpoint::any(80));
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

// The test: what three come to hear, the second after 30 minutes, the third after 61.
Task<> test(Scope&, Endpoint server, std::string& heard) {
  const Duration pauses[] = {1s, 30min, 31min};
  for (const Duration pause : pauses) {
    if (auto slept = co_await sleep(pause); !slept) co_return;
    auto status = co_await ask(server);
    heard += (status ? *status : status.error().message()) + " ";
  }
}

int main(int argc, char** argv) {
  World world({.seed = argc > 1 ? std::stoull(argv[1]) : fresh_seed(),
               .replay = std::string(argv[0]) + " "});
  std::string heard;
  WorldHost& server = world.host("server");
  server.start_service(serve);
  world.host("client").start([&](Host& host) {
    return Runtime(host, one).run_on_each_core(test, server.address(80), std::ref(heard));
  });
  const WorldReport report = world.run_until_done(2h);  // nothing may be left, either
  std::printf("heard %s\n%s", heard.c_str(), report.text().c_str());
  return report.ok() && heard == "200 409 200 " ? 0 : 1;
}
