// Tests what the connections of one server share: lingering streams, dates, memory, drain.
#include "weir/http/server/detail/server_state.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/server/detail/request_id.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::http::server_state_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_and_close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

class ServerStateTest : public HttpTest {
 protected:
  ServerStateTest() {
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

TEST_F(ServerStateTest, SixteenClosedConnectionsLinger) {
  serve();
  std::vector<MemoryPeer*> all;
  const auto ask_one = [&] {
    all.push_back(&connect());
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(*all.back(), get_and_close))), "200");
    EXPECT_TRUE(all.back()->ended());
  };
  for (std::size_t count = 1; count <= 16; ++count) {
    ask_one();
    EXPECT_EQ(open_streams(), count);
  }
  for (MemoryPeer* each : all) EXPECT_FALSE(is_closed(*each));
  for (std::size_t newer = 0; newer < 20; ++newer) {
    ask_one();
    EXPECT_EQ(open_streams(), 16U);
    EXPECT_TRUE(is_closed(*all[newer])) << "the newest replaces the oldest";
    EXPECT_FALSE(is_closed(*all[newer + 1]));
  }
  EXPECT_EQ(server_->counters().connections_open.value(), 0U) << "they need no permit";
  pass(1s);
  EXPECT_EQ(open_streams(), 0U);
}

TEST_F(ServerStateTest, EachClosedConnectionLingersForASecond) {
  serve();
  talk(connect(), get_and_close);
  pass(400ms);
  talk(connect(), get_and_close);
  pass(300ms);
  talk(connect(), get_and_close);
  pass(299ms);
  EXPECT_EQ(open_streams(), 3U);
  pass(1ms);
  EXPECT_EQ(open_streams(), 2U);
  pass(399ms);
  EXPECT_EQ(open_streams(), 2U);
  pass(1ms);
  EXPECT_EQ(open_streams(), 1U);
  pass(299ms);
  EXPECT_EQ(open_streams(), 1U);
  pass(1ms);
  EXPECT_EQ(open_streams(), 0U);
  expect_at_rest();
  talk(connect(), get_and_close);
  pass(999ms);
  EXPECT_EQ(open_streams(), 1U) << "the time starts again";
  pass(1ms);
  EXPECT_EQ(open_streams(), 0U);
}

TEST_F(ServerStateTest, DateFollowsTheWallClockFromTheMiddleOfASecond) {
  platform_.set_wall_time(WallTime{std::chrono::seconds(1'735'689'600)} + 600ms);
  serve();
  MemoryPeer& peer = connect();
  const auto date = [&] { return sim::parse_http_responses(talk(peer, get)).at(0).header("Date"); };
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
  pass(399ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
  pass(1ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:01 GMT");
  pass(999ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:01 GMT");
  pass(1ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:02 GMT");
}

TEST_F(ServerStateTest, ConnectionWithoutMemoryIsCountedAndClosed) {
  serve();
  MemoryPeer& unlucky = connect();
  loop_->blocks().fail_after(0);
  settle();
  EXPECT_FALSE(loop_->blocks().will_fail());
  EXPECT_EQ(ConnectionCounters::of(*loop_).dropped.value(), 1U);
  EXPECT_EQ(server_->counters().connections_accepted.value(), 0U);
  EXPECT_EQ(ServerConnections::of(*loop_).open.load(), 0U) << "its permit is free again";
  EXPECT_TRUE(is_closed(unlucky));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(connect(), get))), "200");
}

TEST_F(ServerStateTest, ConnectionThatFailsDoesNotAffectOthers) {
  serve();
  MemoryPeer& unlucky = connect();
  MemoryPeer& other = connect();
  settle();
  unlucky.send(get);
  loop_->blocks().fail_after(0);
  settle();
  EXPECT_FALSE(loop_->blocks().will_fail());
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
  EXPECT_EQ(answers(unlucky), "");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(other, get))), "200");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(connect(), get))), "200");
}

class ServersOnCores : public MultiCoreTest {};

TEST_F(ServersOnCores, HavePrefixesOfTheirOwnForRequestIds) {
  const Router routes;
  ServerState first(loop(0), routes, {});
  ServerState last(loop(2), routes, {});
  EXPECT_EQ(first.id_prefix(), request_id_prefix(platform_.wall_time(), 0));
  EXPECT_EQ(last.id_prefix(), request_id_prefix(platform_.wall_time(), 2));
  EXPECT_NE(last.id_prefix(), first.id_prefix());
  platform_.set_wall_time(platform_.wall_time() + 1us);
  ServerState later(loop(0), routes, {});
  EXPECT_EQ(later.id_prefix(), request_id_prefix(platform_.wall_time(), 0));
  EXPECT_NE(later.id_prefix(), first.id_prefix());
}

TEST_F(ServersOnCores, DrainFromTheStartIfTheirLoopDrains) {
  const Router routes;
  ServerState early(loop(0), routes, {});
  EXPECT_FALSE(early.draining());
  loop(0).drain();
  platform_.run_until_idle(loops());
  EXPECT_TRUE(early.draining());
  ServerState late(loop(0), routes, {});
  EXPECT_TRUE(late.draining());
  ServerState elsewhere(loop(1), routes, {});
  EXPECT_FALSE(elsewhere.draining());
}

}  // namespace
}  // namespace weir::http::server_state_test
