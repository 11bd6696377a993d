// Tests of a reverse proxy in Worlds whose upstreams vanish at any time.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "weir/http.hpp"
#include "weir/sim/world.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http::reverse_proxy_world_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t long_size = 100'000;

/// Counts the orders that upstreams have taken, by number. It outlives the programs that use it.
std::array<int, 64> orders_taken;

int serve_upstream(loop::Platform& platform) {
  Router routes;
  routes.get("/short", [] { return text("short"); });
  routes.get("/long", [] {
    const auto write = [](BodySink& sink) -> Task<Result<>> {
      const std::string piece(long_size / 10, 'x');
      for (int count = 0; count < 10; ++count) {
        if (auto sent = co_await sink.write(piece); !sent) co_return sent;
        if (auto slept = co_await sleep(2ms); !slept) co_return slept;
      }
      co_return {};
    };
    return stream("text/plain", write);
  });
  routes.websocket("/echo", [](WebSocket& socket) -> Task<Result<>> {
    for (;;) {
      WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
      WEIR_CO_TRY(co_await socket.send(message));
    }
  });
  routes.post("/orders/{number}", [](Request& request, unsigned number) -> Task<Response> {
    auto body = co_await request.body();
    if (!body) co_return Response(to_status(body.error()));
    ++orders_taken.at(number);
    co_return text(std::move(*body));
  });
  return http::run(routes, platform);
}

int serve_proxy(loop::Platform& platform) {
  ReverseProxyOptions options;
  options.client.limits.head_timeout = 2s;
  options.client.limits.body_timeout = 2s;
  options.client.limits.connect_timeout = 1s;
  Router routes;
  routes.group("").fallback(reverse_proxy({"http://one", "http://two"}, options));
  return http::run(routes, platform);
}

/// Returns true for the statuses of a proxy whose upstream has vanished.
bool is_gateway_error(Status status) {
  return code_of(status) >= 502 && code_of(status) <= 504;
}

Task<Result<>> ask_all(Scope&) {
  Client client;
  for (unsigned number = 0; number < orders_taken.size(); ++number) {
    auto found = co_await client.get("http://proxy/short");
    EXPECT_TRUE(found) << found.error().message();
    if (!found) co_return fail(found.error());
    const auto short_text = co_await found->body();
    EXPECT_TRUE(short_text);
    EXPECT_TRUE(found->status() == Status::ok ? *short_text == "short"
                                              : is_gateway_error(found->status()));

    auto large = co_await client.get("http://proxy/long");
    EXPECT_TRUE(large) << large.error().message();
    if (!large) co_return fail(large.error());
    const auto long_text = co_await large->body();
    if (large->status() == Status::ok && long_text) {
      EXPECT_EQ(long_text->size(), long_size) << "a body that is cut off is never complete";
    }

    const std::string url = "http://proxy/orders/" + std::to_string(number);
    auto ordered = co_await client.post(url, "text/plain", std::string(20'000, 'o'));
    EXPECT_TRUE(ordered) << ordered.error().message();
    if (!ordered) co_return fail(ordered.error());
    const auto order_text = co_await ordered->body();
    if (ordered->status() == Status::ok && order_text) {
      EXPECT_EQ(order_text->size(), 20'000U);
      EXPECT_EQ(orders_taken.at(number), 1);
    }
  }
  co_return {};
}

/// Talks to the upstreams by WebSockets. Each ends with a Close, also if its upstream vanishes.
Task<Result<>> echo_all(Scope&) {
  Client client;
  for (int number = 0; number < 40; ++number) {
    WebSocketCloseCode code{};
    const auto talk = [&code](WebSocket& socket) -> Task<Result<>> {
      for (int count = 0; count < 4; ++count) {
        const std::string sent(20'000, static_cast<char>('a' + count));
        if (!co_await socket.send(sent)) break;
        const auto echoed = co_await socket.read();
        if (!echoed) break;
        EXPECT_EQ(echoed->text(), sent);
        std::ignore = co_await sleep(3ms);
      }
      const auto closed = co_await socket.close();
      EXPECT_TRUE(closed);
      code = socket.close_code();
      co_return {};
    };
    const auto ended = co_await client.websocket("ws://proxy/echo", talk);
    if (ended) {
      EXPECT_TRUE(code == WebSocketCloseCode::normal || code == WebSocketCloseCode::bad_gateway)
          << static_cast<int>(code);
    } else {
      EXPECT_EQ(ended.error(), error_of(Status::bad_gateway)) << ended.error().message();
    }
    std::ignore = co_await sleep(5ms);
  }
  co_return {};
}

int echo(loop::Platform& platform) {
  return Runtime(platform, {.announce = false}).run_on_each_core(echo_all);
}

int ask(loop::Platform& platform) {
  return Runtime(platform, {.announce = false}).run_on_each_core(ask_all);
}

class ReverseProxyWorldTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ReverseProxyWorldTest, UpstreamsThatVanishNeverHarmAClient) {
  orders_taken.fill(0);
  sim::World world({.seed = GetParam()});
  sim::Host& one = world.host("one");
  sim::Host& two = world.host("two");
  one.start_service(serve_upstream);
  two.start_service(serve_upstream);
  world.host("proxy").start_service(serve_proxy);
  world.host("client").start(ask);
  world.host("talker").start(echo);
  // Each upstream is killed again and again, at times that differ in each World, and restarted.
  for (unsigned kill = 1; kill <= 40; ++kill) {
    sim::Host& victim = kill % 2 == 0 ? one : two;
    world.schedule(kill * 23ms + std::chrono::microseconds(world.random().below(9000)), [&victim] {
      if (victim.killed() && !victim.done()) return;
      victim.kill();
      victim.start_service(serve_upstream);
    });
  }
  const auto report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  for (const int taken : orders_taken) EXPECT_LE(taken, 1) << "an order is never sent twice";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReverseProxyWorldTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace weir::http::reverse_proxy_world_test
