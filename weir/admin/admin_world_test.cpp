// Tests of the admin listener in Worlds whose clients attack it and vanish at any byte.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "weir/admin/listener.hpp"
#include "weir/http.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/http_testing/detail/http_attacks.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/world.hpp"

namespace weir::admin_world_test {
namespace {

using namespace std::chrono_literals;

/// A service whose slow requests take 20 seconds.
int serve_program(loop::Platform& platform) {
  RuntimeOptions options;
  options.announce = false;
  options.drain_timeout = 60s;
  Runtime runtime(platform, options);
  AdminListenerOptions pages;
  pages.endpoint = Endpoint::any(9090);
  pages.token = "t0ken";
  pages.connections_max = 10'000;
  AdminListener admin(std::move(pages));
  http::Router router;
  router.get("/slow", []() -> Task<http::Response> {
    std::ignore = co_await sleep(20s);
    co_return http::text("slow\n");
  });
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(admin.serve(scope));
    http::ServeOptions serving;
    serving.endpoint = Endpoint::any(80);
    co_return co_await http::serve(scope, router, serving);
  };
  return runtime.run_on_each_core(body);
}

/// The World sends SIGTERM to the service after it.
int wait_a_minute(loop::Platform& platform) {
  RuntimeOptions options;
  options.announce = false;
  const auto body = [](Scope&) -> Task<Result<>> { return as_task(sleep(60s)); };
  return Runtime(platform, options).run_on_each_core(body);
}

class AdminWorldTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  AdminWorldTest() {
    server_.start_service(serve_program);
    clients_.start(wait_a_minute);
  }
  static std::string request(std::string_view line, std::string_view body = {}) {
    std::string text = std::string(line) + " HTTP/1.1\r\nHost: 10.0.0.1:9090\r\n" +
                       "Authorization: Bearer t0ken\r\n";
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + std::string(body);
  }
  sim::Peer& connect(std::uint16_t port = 9090) {
    return peers_.emplace_back(clients_, server_.address(port));
  }
  Duration random_time(Duration most) {
    const auto range = static_cast<std::uint64_t>(most / 1us);
    return std::chrono::microseconds(world_.random().below(range));
  }
  /// Lets a client vanish in one of four ways.
  void vanish(sim::Peer& peer) {
    switch (world_.random().below(4)) {
      case 0:
        return peer.reset();
      case 1:
        return peer.close();
      case 2:
        return peer.finish();
      default:
        return peer.set_reading(false);
    }
  }
  /// Sends a request later. Returns its client, which exists then.
  sim::Peer*& ask_at(Duration moment, std::uint16_t port, const std::string& text) {
    sim::Peer*& asked = asked_.emplace_back(nullptr);
    world_.schedule(moment, [this, &asked, port, text] {
      asked = &connect(port);
      asked->send(text);
    });
    return asked;
  }

  sim::World world_{{.seed = GetParam()}};
  sim::Host& server_ = world_.host("server", {.cores = 2});
  sim::Host& clients_ = world_.host("clients");
  std::deque<sim::Peer> peers_;
  std::deque<sim::Peer*> asked_;
};

TEST_P(AdminWorldTest, AnswersOthersWhileClientsVanishAtAnyByte) {
  for (const std::string& text :
       {request("GET /weir/tasks"), request("GET /metrics"),
        request("POST /weir/log_levels", "name=shop&level=trace"),
        request("GET /weir/connections.json") + request("GET /weir/cores.txt")}) {
    for (std::size_t size = 0; size <= text.size(); ++size) {
      world_.schedule(1s + random_time(40s), [this, part = text.substr(0, size)] {
        sim::Peer& peer = connect();
        peer.send(part);
        world_.schedule(random_time(500ms), [this, &peer] { vanish(peer); });
      });
    }
  }
  sim::Peer*& page = ask_at(20s, 9090, request("GET /weir/cores.txt"));
  sim::Peer*& last = ask_at(50s, 9090, request("GET /readyz"));
  const auto report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_TRUE(page != nullptr && last != nullptr);
  EXPECT_TRUE(page->received().starts_with("HTTP/1.1 200 ")) << page->received();
  EXPECT_TRUE(last->received().contains(R"({"status":"ok"})")) << last->received();
}

TEST_P(AdminWorldTest, SurvivesTheAttacksOnServers) {
  for (const sim::HttpAttack& attack : sim::http_attacks()) {
    world_.schedule(1s + random_time(10s), [this, &attack] {
      sim::Peer& peer = connect();
      if (attack.read_size == 0) peer.set_reading(false);
      peer.send(attack.initial_data);
      if (attack.end_action == sim::HttpAttack::EndAction::half_close) peer.finish();
      if (attack.end_action == sim::HttpAttack::EndAction::reset) peer.reset();
      for (int count = 0; count < 30; ++count) {
        world_.schedule(count * 300ms, [&peer, &attack] {
          if (!peer.is_closed()) peer.send(attack.repeated_data);
        });
      }
    });
  }
  sim::Peer*& page = ask_at(13s, 9090, request("GET /weir/cores.txt"));
  std::size_t left = 99;
  world_.schedule(55s, [&] { left = server_.connections().size(); });
  const auto report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_TRUE(page != nullptr);
  EXPECT_TRUE(page->received().starts_with("HTTP/1.1 200 ")) << page->received();
  EXPECT_EQ(left, 0U) << "all attackers and idle clients are closed";
}

TEST_P(AdminWorldTest, SaysThatItDrainsUntilTheDrainEnds) {
  sim::Peer*& slow = ask_at(55s, 80, "GET /slow HTTP/1.1\r\nHost: server\r\n\r\n");
  sim::Peer*& idle = ask_at(55s, 9090, request("GET /livez"));
  sim::Peer*& alive = ask_at(65s, 9090, request("GET /livez"));
  sim::Peer*& ready = ask_at(70s, 9090, request("GET /readyz"));
  for (int number = 0; number < 200; ++number) {
    world_.schedule(60s + random_time(20s), [this] {
      sim::Peer& peer = connect();
      peer.send(request("GET /weir/connections"));
      world_.schedule(random_time(1s), [this, &peer] { vanish(peer); });
    });
  }
  const auto report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_TRUE(slow != nullptr && idle != nullptr && alive != nullptr && ready != nullptr);
  EXPECT_TRUE(slow->received().contains("slow\n"));
  EXPECT_TRUE(alive->received().starts_with("HTTP/1.1 200 ")) << alive->received();
  EXPECT_TRUE(ready->received().starts_with("HTTP/1.1 503 ")) << ready->received();
  EXPECT_TRUE(ready->received().contains("draining")) << ready->received();
  EXPECT_NE(idle->state(), system_error(EAGAIN)) << "it is closed";
}

INSTANTIATE_TEST_SUITE_P(Seeds, AdminWorldTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace weir::admin_world_test
