// Tests the observer of a server in Worlds whose clients vanish at any time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include "weir/http.hpp"
#include "weir/http/server/server_observer.hpp"
#include "weir/sim/world.hpp"

namespace weir::http::server_observer_world_test {
namespace {

using namespace std::chrono_literals;

/// Counts the requests of the programs of a World. It outlives them.
struct Counts final : ServerObserver {
  void on_requests_ended(Loop&, Instant end,
                         std::span<const EndedRequest> ended) noexcept override {
    EXPECT_FALSE(ended.empty());
    for (const EndedRequest& each : ended) {
      EXPECT_GE(end, each.begin);
      ++(each.route == nullptr ? unrouted : routed);
      ++(each.complete ? complete : cut);
      // A client that leaves while the handler waits gets no status.
      EXPECT_TRUE(each.status != Status() || !each.complete);
    }
  }
  std::uint64_t begun = 0;  // by handlers
  std::uint64_t routed = 0;
  std::uint64_t unrouted = 0;
  std::uint64_t complete = 0;
  std::uint64_t cut = 0;
};
Counts* counts = nullptr;

Task<Result<>> write_slowly(BodySink& sink) {
  const std::string piece(10'000, 'x');
  for (int count = 0; count < 10; ++count) {
    WEIR_CO_TRY(co_await sink.write(piece));
    WEIR_CO_TRY(co_await sleep(1ms));
  }
  co_return {};
}

int serve_all(loop::Platform& platform) {
  Router routes;
  routes.get("/short", [] {
    ++counts->begun;
    return text("short");
  });
  routes.get("/slow", []() -> Task<Response> {
    ++counts->begun;
    std::ignore = co_await sleep(5ms);
    co_return text("slow");
  });
  routes.get("/long", [] {
    ++counts->begun;
    return stream("text/plain", write_slowly);
  });
  return run(routes, platform,
             {.endpoint = Endpoint::any(80),
              .plain_http2 = PlainHttp2::prior_knowledge,
              .observer = counts});
}

Task<Result<>> ask_all(Scope&) {
  Client client;
  for (int number = 0; number < 40; ++number) {
    for (const char* const path : {"/short", "/slow", "/long", "/none"}) {
      const std::string url = std::string("http://server") + path;
      auto found = co_await client.get(url);
      if (!found) continue;
      const auto body = co_await found->body();
      std::ignore = body;
    }
  }
  co_return {};
}

int ask(loop::Platform& platform) {
  return Runtime(platform, {.announce = false}).run_on_each_core(ask_all);
}

class ServerObserverWorldTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ServerObserverWorldTest, CountsEachRequestOfVanishingClientsOnce) {
  Counts here;
  counts = &here;
  sim::World world({.seed = GetParam()});
  world.host("server").start_service(serve_all);
  sim::Host& one = world.host("one");
  sim::Host& two = world.host("two");
  one.start(ask);
  two.start(ask);
  for (unsigned kill = 1; kill <= 30; ++kill) {
    sim::Host& victim = kill % 2 == 0 ? one : two;
    world.schedule(kill * 17ms + std::chrono::microseconds(world.random().below(9000)),
                   [&victim, last = kill >= 29] {
                     if (victim.killed() && !victim.done()) return;
                     victim.kill();
                     if (!last) victim.start(ask);
                   });
  }
  const auto report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(here.routed, here.begun);
  EXPECT_GT(here.complete, 10U);
  EXPECT_GT(here.cut, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ServerObserverWorldTest, testing::Range<std::uint64_t>(1, 5));

}  // namespace
}  // namespace weir::http::server_observer_world_test
