// Tests of the permits of a server: their limits, evictions, rejections and reserves.
#include "weir/http/server/detail/open_connections.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::open_connections_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_and_close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

class OpenConnectionsTest : public HttpTest {
 protected:
  OpenConnectionsTest() {
    routes_.get("/", [] { return text("hello\n"); });
  }

  std::string answers(MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }
  /// Returns the number of streams that the server has open, without its listener.
  std::size_t open_streams() const { return platform_.open_descriptors() - 1; }
  /// Returns true if the server has closed the stream of this peer.
  bool is_closed(MemoryPeer& peer) {
    peer.send("x");
    settle();
    return peer.send("x") == 0;  // the answer to the first byte was a reset
  }
};

struct DescriptorRow {
  std::size_t descriptors;
  std::size_t connections;
};

TEST(ServerPermits, LeaveSixtyFourDescriptorsForOtherFiles) {
  for (const DescriptorRow row :
       {DescriptorRow{1, 1}, DescriptorRow{63, 1}, DescriptorRow{64, 1}, DescriptorRow{65, 1},
        DescriptorRow{66, 2}, DescriptorRow{164, 100}}) {
    MemoryPlatform platform({.descriptors_max = row.descriptors});
    const auto loop = Loop::make(platform, {}).value();
    const Router routes;
    ServerState server(*loop, routes, {});
    std::deque<ConnectionPermit> permits;
    while (permits.size() < 200) {
      auto permit = server.connections().try_acquire_permit();
      if (!permit) break;
      permits.push_back(std::move(*permit));
    }
    EXPECT_EQ(permits.size(), row.connections) << row.descriptors << " descriptors";
  }
}

TEST_F(OpenConnectionsTest, AtMost32RejectedConnectionsLinger) {
  serve({.connections_max = 1});
  MemoryPeer& served = connect();
  talk(served, get.substr(0, 5));
  const auto reject_one = [&]() -> MemoryPeer& {
    MemoryPeer& peer = connect();
    settle();
    EXPECT_EQ(answers(peer), "503");
    EXPECT_TRUE(peer.ended());
    return peer;
  };
  for (std::size_t count = 1; count <= 32; ++count) {
    reject_one();
    EXPECT_EQ(open_streams(), 1 + count);
  }
  MemoryPeer& beyond = reject_one();
  EXPECT_EQ(open_streams(), 33U) << "closed directly behind its answer";
  EXPECT_TRUE(is_closed(beyond));
  EXPECT_EQ(server_->counters().connections_rejected.value(), 33U);
  EXPECT_EQ(server_->counters().connections_accepted.value(), 1U);
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
  pass(1s);
  EXPECT_EQ(open_streams(), 1U);
  reject_one();
  EXPECT_EQ(open_streams(), 2U) << "there is room again";
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(served, get.substr(5)))), "200");
}

TEST_F(OpenConnectionsTest, AnswerToARejectedConnectionIsComplete) {
  serve({.connections_max = 1});
  connect();
  MemoryPeer& peer = connect();
  settle();
  const std::string answer = peer.received();
  const auto parsed = sim::parse_http_responses(answer);
  ASSERT_EQ(sim::statuses_of(parsed), "503");
  EXPECT_EQ(parsed[0].header("Connection"), "close");
  EXPECT_EQ(parsed[0].header("Content-Length"), "0");
  EXPECT_EQ(parsed[0].header("Date"), "Wed, 01 Jan 2025 00:00:00 GMT");
}

// Each accept is followed by others of the same turn, unless the listener lets other tasks run.
TEST_F(OpenConnectionsTest, RejectedClientsThatHaveLeftMakeRoomForOthers) {
  serve({.connections_max = 1});
  connect();
  settle();
  std::vector<MemoryPeer*> all;
  for (int count = 0; count < 200; ++count) {
    all.push_back(&connect());
    all.back()->send(get);
    all.back()->finish();
  }
  settle();
  for (MemoryPeer* each : all) {
    ASSERT_EQ(answers(*each), "503");
    ASSERT_TRUE(each->ended()) << "closed without a reset";
  }
  EXPECT_EQ(server_->counters().connections_rejected.value(), 200U);
  EXPECT_EQ(open_streams(), 1U);
}

TEST_F(OpenConnectionsTest, LongestIdleConnectionGivesWay) {
  serve({.connections_max = 3});
  MemoryPeer& idle = connect();
  EXPECT_TRUE(talk(idle, get).ends_with("hello\n"));
  pass(1s);
  MemoryPeer& silent = connect();
  MemoryPeer& busy = connect();
  talk(busy, get.substr(0, 5));
  MemoryPeer& first = connect();
  EXPECT_TRUE(talk(first, get).ends_with("hello\n"));
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(idle.received().ends_with("hello\n")) << "it was used, so its client expects this";
  EXPECT_FALSE(silent.ended());
  pass(999ms);
  EXPECT_TRUE(talk(connect(), get).starts_with("HTTP/1.1 503 ")) << "its bytes may be on their way";
  pass(300ms);
  MemoryPeer& second = connect();
  EXPECT_TRUE(talk(second, get).ends_with("hello\n"));
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(server_->counters().connections_open.value(), 3U);
  EXPECT_EQ(server_->counters().connections_evicted.value(), 2U);
  EXPECT_EQ(server_->counters().silent_connections.value(), 0U);
  EXPECT_TRUE(talk(connect(), get).ends_with("hello\n"));
  EXPECT_EQ(answers(silent), "503") << "its first request may be on its way";
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(talk(busy, get.substr(5)).ends_with("hello\n")) << "it has a part of a request";
  EXPECT_TRUE(server_->counters().summary().contains("3 closed for others"));
}

TEST_F(OpenConnectionsTest, AConnectionWhoseHeadDoesNotArriveGivesWay) {
  serve({.connections_max = 2});
  MemoryPeer& slow = connect();
  talk(slow, get.substr(0, 5));
  MemoryPeer& other = connect();
  talk(other, get.substr(0, 5));
  pass(1900ms);
  EXPECT_TRUE(talk(connect(), get).starts_with("HTTP/1.1 503 "));
  pass(200ms);
  MemoryPeer& first = connect();
  EXPECT_TRUE(talk(first, get).ends_with("hello\n"));
  EXPECT_EQ(answers(slow), "503");
  EXPECT_TRUE(slow.ended());
  EXPECT_TRUE(talk(other, get.substr(5)).ends_with("hello\n")) << "one gives way";
  EXPECT_EQ(server_->counters().connections_open.value(), 2U);
  EXPECT_EQ(server_->counters().connections_evicted.value(), 1U);
}

// The new connection has the permit, so a request that arrives too late does not get it back.
TEST_F(OpenConnectionsTest, RequestOfAnEvictedConnectionIsNotServed) {
  serve({.connections_max = 1});
  MemoryPeer& idle = connect();
  EXPECT_TRUE(talk(idle, get).ends_with("hello\n"));
  pass(1s);
  MemoryPeer& first = connect();
  idle.send(get);
  settle();
  EXPECT_EQ(answers(idle), "200 503");
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
  EXPECT_TRUE(talk(first, get).ends_with("hello\n"));
  EXPECT_EQ(server_->counters().connections_rejected.value(), 0U);
}

TEST_F(OpenConnectionsTest, RequestWhoseHeadTookTooLongIsNotServed) {
  routes_.websocket("/ws",
                    [](WebSocket& socket) -> Task<> { std::ignore = co_await socket.read(); });
  serve({.connections_max = 1});
  for (const std::string_view head :
       {"GET / HTTP/1.1\r\nHost: a\r\n",
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"}) {
    MemoryPeer& slow = connect();
    talk(slow, head);
    pass(3s);
    MemoryPeer& next = connect();
    slow.send("\r\n");  // it arrives in the turn of the eviction
    settle();
    EXPECT_EQ(answers(slow), "503");
    EXPECT_TRUE(slow.ended());
    EXPECT_FALSE(slow.was_reset()) << "the server reads on, so that the answer arrives";
    EXPECT_TRUE(talk(next, get).ends_with("hello\n"));
    EXPECT_EQ(server_->counters().connections_open.value(), 1U);
    pass(2s);
  }
  EXPECT_EQ(server_->counters().websockets.value(), 0U);
  EXPECT_TRUE(talk(connect(), get_and_close).ends_with("hello\n"));
  EXPECT_TRUE(talk(connect(), get).ends_with("hello\n")) << "the permits are counted right";
}

TEST_F(OpenConnectionsTest, TheAnswerToAnEvictedHeadSurvivesFurtherBytes) {
  serve({.connections_max = 1});
  MemoryPeer& slow = connect();
  talk(slow, "POST / HTTP/1.1\r\nHost: a\r\nX-A: ");
  pass(3s);
  EXPECT_TRUE(talk(connect(), get).ends_with("hello\n"));
  for (int count = 0; count < 3; ++count) talk(slow, "more of the head");
  EXPECT_FALSE(is_closed(slow)) << "the kernel would answer these bytes with a reset";
  EXPECT_EQ(answers(slow), "503");
  pass(2s);
  EXPECT_TRUE(is_closed(slow));
}

TEST_F(OpenConnectionsTest, UsedConnectionStaysForOneSecondWithoutALimitOfIdleness) {
  serve({.idle_timeout = Duration::max(), .connections_max = 1});
  pass(10s);
  MemoryPeer& idle = connect();
  EXPECT_TRUE(talk(idle, get).ends_with("hello\n"));
  EXPECT_TRUE(talk(connect(), get).starts_with("HTTP/1.1 503 "));
  pass(1300ms);
  EXPECT_TRUE(talk(connect(), get).ends_with("hello\n"));
  EXPECT_TRUE(idle.ended());
}

TEST_F(OpenConnectionsTest, ConnectionsWithARequestDoNotGiveWay) {
  routes_.get("/slow", []() -> Task<Response> {
    std::ignore = co_await sleep(3s);
    co_return text("slow\n");
  });
  serve({.connections_max = 2});
  MemoryPeer& first = connect();
  MemoryPeer& second = connect();
  talk(first, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  talk(second, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  pass(1s);
  EXPECT_TRUE(talk(connect(), get).starts_with("HTTP/1.1 503 "));
  pass(2s);
  EXPECT_TRUE(first.take().ends_with("slow\n"));
  pass(1s);
  EXPECT_TRUE(talk(connect(), get).ends_with("hello\n"));
  EXPECT_TRUE(first.ended());
  EXPECT_FALSE(second.was_reset());
}

// The search looks at a part of the connections, and continues behind them.
TEST_F(OpenConnectionsTest, IdleConnectionsAreFoundAmongMany) {
  serve({.connections_max = 200});
  std::vector<MemoryPeer*> all;
  for (int count = 0; count < 200; ++count) {
    all.push_back(&connect());
    talk(*all.back(), count < 190 ? get.substr(0, 5) : get);
  }
  pass(1s);
  std::string statuses;
  for (int count = 0; count < 40; ++count) {
    statuses += talk(connect(), get).starts_with("HTTP/1.1 200 ") ? "+" : "-";
  }
  EXPECT_EQ(std::ranges::count(statuses, '+'), 10) << statuses;
  EXPECT_EQ(server_->counters().connections_open.value(), 200U);
  for (int count = 0; count < 190; ++count)
    EXPECT_FALSE(all[static_cast<std::size_t>(count)]->ended());
}

class PermitsOnCores : public MultiCoreTest {};

TEST_F(PermitsOnCores, ShareThePermits) {
  const Router routes;
  ServerState first(loop(0), routes, {.limits = {.connections_max = 2}});
  ServerState second(loop(1), routes, {.limits = {.connections_max = 2}});
  auto one = first.connections().try_acquire_permit();
  auto other = second.connections().try_acquire_permit();
  EXPECT_TRUE(one && other);
  EXPECT_FALSE(first.connections().try_acquire_permit());
  EXPECT_FALSE(second.connections().try_acquire_permit());
  one.reset();
  EXPECT_TRUE(second.connections().try_acquire_permit());
  EXPECT_TRUE(first.connections().try_acquire_permit());
  other.reset();
  EXPECT_EQ(ServerConnections::of(loop(0)).open.load(), 0U);
}

/// Returns the number of permits that a server gives at most 200 callers.
std::size_t permits_of(ServerState& server) {
  std::deque<ConnectionPermit> permits;
  while (permits.size() < 200) {
    auto permit = server.connections().try_acquire_permit();
    if (!permit) break;
    permits.push_back(std::move(*permit));
  }
  return permits.size();
}

TEST_F(PermitsOnCores, CountTheirOwnConnectionsOnly) {
  const Router routes;
  const Router others;
  ServerState first(loop(0), routes, {.limits = {.connections_max = 5}});
  ServerState second(loop(1), routes, {.limits = {.connections_max = 5}});
  ServerState other(loop(0), others, {.limits = {.connections_max = 2}});
  ServerState secure(loop(0), routes, {.limits = {.connections_max = 2}});
  first.connections().set_endpoint(Endpoint::loopback(80));
  second.connections().set_endpoint(Endpoint::loopback(80));
  secure.connections().set_endpoint(Endpoint::loopback(443));
  std::deque<ConnectionPermit> permits;
  while (auto permit = first.connections().try_acquire_permit()) {
    permits.push_back(std::move(*permit));
  }
  EXPECT_EQ(permits.size(), 5U);
  EXPECT_EQ(permits_of(second), 0U) << "it is the same server on another core";
  EXPECT_EQ(permits_of(other), 2U);
  EXPECT_EQ(permits_of(secure), 2U);
  EXPECT_EQ(ServerConnections::of(loop(0)).open.load(), 5U) << "the report has all";
  permits.clear();
  EXPECT_EQ(permits_of(second), 5U);
}

TEST_F(OpenConnectionsTest, HasTheConnectionsOfItsEndpoint) {
  serve({.connections_max = 2});
  ServerState elsewhere(*loop_, routes_, {.limits = {.connections_max = 1}});
  connect();
  connect();
  settle();
  EXPECT_EQ(server_->counters().connections_open.value(), 2U);
  EXPECT_EQ(permits_of(elsewhere), 1U);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(connect(), get))), "503");
}

TEST_F(PermitsOnCores, WithAReserveDoNotCountWithTheOthers) {
  const Router routes;
  ServerState service(loop(0), routes, {.limits = {.connections_max = 1}});
  ConnectionReserve reserve(3);
  ServerState first(loop(0), routes, {}, &reserve);
  ServerState second(loop(1), routes, {}, &reserve);
  auto of_service = service.connections().try_acquire_permit();
  ASSERT_TRUE(of_service);
  EXPECT_FALSE(service.connections().try_acquire_permit());
  auto permit = first.connections().try_acquire_permit();
  ASSERT_TRUE(permit) << "the service has all its connections in use";
  EXPECT_EQ(permits_of(second), 2U) << "one limit for all cores";
  of_service.reset();
  EXPECT_EQ(permits_of(service), 1U);
  EXPECT_EQ(reserve.open().load(), 1U);
}

TEST_F(PermitsOnCores, LeaveTheDescriptorsOfReserves) {
  const Router routes;
  MemoryPlatform platform({.descriptors_max = 174});
  const auto loop = Loop::make(platform, {}).value();
  ServerState service(*loop, routes, {});
  ServerState limited(*loop, routes, {.limits = {.connections_max = 110}});
  ConnectionReserve small(10);
  ConnectionReserve large(1000);
  EXPECT_EQ(permits_of(service), 110U);
  {
    const ServerState first(*loop, routes, {}, &small);
    const ServerState same(*loop, routes, {}, &small);
    EXPECT_EQ(permits_of(service), 100U) << "a reserve counts once";
    EXPECT_EQ(permits_of(limited), 110U) << "the program has set this limit";
    const ServerState more(*loop, routes, {}, &large);
    EXPECT_EQ(permits_of(service), 1U);
  }
  EXPECT_EQ(permits_of(service), 110U);
}

}  // namespace
}  // namespace weir::http::open_connections_test
