// consumer_test [SEED] tests services of a project that uses an installed Weir, in the simulated
// world. The services send greetings by TCP, found by name, and by UDP.
#include <weir/app.hpp>
#include <weir/http.hpp>
#include <weir/http_testing.hpp>
#include <weir/net/dns/connect.hpp>
#include <weir/net/listen/listener.hpp>
#include <weir/net/udp.hpp>

#include <cstdio>
#include <string>

using namespace weir;

constexpr std::uint16_t port = 7;

struct Config {
  std::string greeting = "hello";
};

class Greeter {
 public:
  Greeter(const Config& config, Scope& scope) : greeting_(config.greeting) {
    scope.spawn(greet_streams(scope));
    scope.spawn(greet_datagrams());
  }

 private:
  Task<> greet(tcp::Stream peer) { std::ignore = co_await peer.write(greeting_); }
  Task<> greet_streams(Scope& scope) {
    auto listener = co_await tcp::listen(Endpoint::any(port));
    while (listener) {
      auto peer = co_await listener->accept();
      if (!peer) co_return;
      scope.spawn(greet(std::move(*peer)));
    }
  }
  Task<> greet_datagrams() {
    auto socket = co_await udp::bind(Endpoint::any(port));
    while (socket) {
      const auto asked = co_await socket->receive();
      if (!asked) co_return;
      std::ignore = co_await socket->send(greeting_, asked->peer);
    }
  }

  std::string greeting_;
};

int serve(loop::Platform& platform) {
  App app;
  app.shared([] { return Config{}; });
  app.per_core<Greeter>();
  Runtime runtime(platform, {.cores = 1, .announce = false});
  return app.run(runtime);
}

Task<> visit(Scope&, std::string server, Endpoint address, std::string& heard) {
  std::ignore = co_await sleep(1s);
  auto stream = co_await tcp::connect(server, port);
  if (!stream) co_return;
  while (auto bytes = co_await stream->read()) heard += bytes->text();
  auto socket = co_await udp::connect(address);
  if (!socket) co_return;
  std::ignore = co_await socket->send("?");
  const auto datagram = co_await socket->receive();
  if (datagram) heard += std::string(", ") + std::string(datagram->buffer.text());
}

http::Router routes() {
  http::Router router;
  router.get("/", [] { return http::text("hello"); });
  return router;
}

int main(int argc, char** argv) {
  http::TestClient tester(routes());
  if (tester.get("/").body() != "hello") return 1;
  sim::World world({.seed = argc > 1 ? std::stoull(argv[1]) : sim::fresh_seed(),
                    .replay = std::string(argv[0]) + " "});
  sim::Host& server = world.host("server");
  server.start_service(serve);
  const Endpoint address = server.address(port);
  std::string heard;
  world.host("client").start([&](loop::Platform& platform) {
    Runtime runtime(platform, {.cores = 1, .announce = false});
    return runtime.run_on_each_core(visit, std::string("10.0.0.1"), address, std::ref(heard));
  });
  const sim::WorldReport report = world.run_until_done(1h);
  std::printf("heard: %s\n%s", heard.c_str(), report.text().c_str());
  return report.ok() && heard == "hello, hello" ? 0 : 1;
}
