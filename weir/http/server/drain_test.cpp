// Tests how long a draining server waits for each kind of connection, and how a stop ends them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::drain_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post_of(std::string_view path, std::size_t length) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

class DrainTest : public HttpTest {
 protected:
  DrainTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.post("/size", [](Request& request) -> Task<Response> {
      const auto body = co_await request.body();
      if (!body) co_return Response(to_status(body.error()));
      co_return text(std::to_string(body->size()));
    });
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.post("/sleeps", [](Request&) -> Task<Response> {
      std::ignore = co_await sleep(1s);
      co_return text("slept\n");
    });
    routes_.get("/waits", [](Request&) -> Task<Response> {
      const auto slept = co_await sleep(1h);
      co_return slept ? text("slept\n") : text("cancelled\n");
    });
    routes_.get("/streams", [] { return stream(text_type, write_late); });
  }
  static Task<Result<>> write_late(BodySink& sink) {
    if (auto slept = co_await sleep(1h); !slept) co_return slept;
    co_return co_await sink.write("late");
  }

  std::string answers(MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }
  /// Expects that the connection closes without a reset exactly after `wait`.
  void expect_end_after(MemoryPeer& peer, Duration wait) {
    pass(wait - 1ms);
    EXPECT_FALSE(peer.ended());
    pass(1ms);
    EXPECT_TRUE(peer.ended());
  }
};

TEST_F(DrainTest, ConnectionWithoutAByteHasASecond) {
  serve();
  MemoryPeer& waiting = connect();  // in the listener's queue, not yet accepted
  drain();
  expect_end_after(waiting, 1s);
  EXPECT_EQ(answers(waiting), "");
  EXPECT_EQ(server_->counters().silent_connections.value(), 0U);
}

TEST_F(DrainTest, DoesNotExtendTheIdleTimeout) {
  serve({.idle_timeout = 10s, .first_request_timeout = 800ms});
  MemoryPeer& used = connect();
  talk(used, get);
  pass(9300ms);
  MemoryPeer& fresh = connect();
  settle();
  pass(650ms);
  settle();  // the loop drains in a turn of this moment
  drain();
  expect_end_after(used, 50ms);
  expect_end_after(fresh, 100ms);
}

TEST_F(DrainTest, ShortIdleTimeoutHoldsDuringADrain) {
  serve({.idle_timeout = 300ms});
  MemoryPeer& waiting = connect();
  drain();
  expect_end_after(waiting, 300ms);
}

TEST_F(DrainTest, HeadThatHasBegunHasTwoSeconds) {
  serve();
  MemoryPeer& early = connect();
  talk(early, get.substr(0, 10));
  MemoryPeer& waiting = connect();
  drain();
  talk(waiting, get.substr(0, 10));
  pass(1999ms);
  EXPECT_EQ(answers(early) + answers(waiting), "");
  pass(1ms);
  EXPECT_EQ(answers(early), "408");
  EXPECT_EQ(answers(waiting), "408");
}

TEST_F(DrainTest, HeadDuringADrainHasTwoSecondsFromItsFirstByte) {
  serve();
  MemoryPeer& waiting = connect();
  drain();
  pass(900ms);
  talk(waiting, get.substr(0, 10));
  pass(1900ms);
  talk(waiting, get.substr(10, 5));
  pass(99ms);
  EXPECT_EQ(answers(waiting), "");
  pass(1ms);
  EXPECT_EQ(answers(waiting), "408");
  pass(1s);
  EXPECT_TRUE(stopped());
}

TEST_F(DrainTest, DoesNotExtendTheTimeOfAHead) {
  serve({.head_timeout = 1s});
  MemoryPeer& early = connect();
  talk(early, get.substr(0, 10));
  MemoryPeer& waiting = connect();
  pass(500ms);
  drain();
  talk(waiting, get.substr(0, 10));
  pass(499ms);
  EXPECT_EQ(answers(early), "");
  pass(1ms);
  EXPECT_EQ(answers(early), "408");
  pass(500ms);
  EXPECT_EQ(answers(waiting), "408");
}

TEST_F(DrainTest, BodyKeepsItsOwnTime) {
  serve();
  MemoryPeer& in_body = connect();
  MemoryPeer& ignored = connect();
  talk(in_body, post_of("/size", 4) + "ab");
  talk(ignored, post_of("/ignored", 4) + "ab");
  drain();
  pass(4900ms);
  EXPECT_FALSE(in_body.ended());
  talk(in_body, "cd");
  talk(ignored, "cd");
  for (MemoryPeer* const each : {&in_body, &ignored}) {
    const auto all = sim::parse_http_responses(each->received());
    ASSERT_EQ(sim::statuses_of(all), "200");
    EXPECT_EQ(all[0].header("Connection"), "close");
    EXPECT_TRUE(each->ended());
  }
}

// The client learns immediately that it must connect elsewhere.
TEST_F(DrainTest, RequestThatBeginsDuringADrainDoesNotWaitForAnUnreadBody) {
  serve();
  MemoryPeer& before = connect();
  talk(before, post_of("/sleeps", 4) + "ab");
  MemoryPeer& waiting = connect();
  drain();
  talk(waiting, post_of("/ignored", 4) + "ab");
  EXPECT_EQ(answers(waiting), "200");
  pass(1s);
  EXPECT_EQ(answers(before), "") << "this request began before the drain";
  talk(before, "cd");
  EXPECT_EQ(answers(before), "200");
}

TEST_F(DrainTest, MalformedBodyThatHasArrivedIsRejected) {
  serve();
  MemoryPeer& waiting = connect();
  drain();
  talk(waiting, "POST /ignored HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\ng\r\n");
  EXPECT_EQ(answers(waiting), "400");
  EXPECT_TRUE(waiting.ended());
}

TEST_F(DrainTest, PipelinedRequestIsStillAnswered) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/sleeps", 0) + std::string(get));
  drain();
  pass(1s);
  const auto all = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(all), "200");
  EXPECT_EQ(all[0].header("Connection"), "close") << "nothing follows it";
  EXPECT_TRUE(peer.ended());
}

TEST_F(DrainTest, HappensOnce) {
  serve();
  MemoryPeer& used = connect();
  talk(used, get);
  server_->drain();
  pass(60ms);
  drain();
  server_->drain();
  expect_end_after(used, 40ms);
}

TEST_F(DrainTest, StopCountsNoSilentConnectionAndNoFailure) {
  serve();
  MemoryPeer& silent = connect();
  MemoryPeer& in_head = connect();
  MemoryPeer& in_body = connect();
  MemoryPeer& in_handler = connect();
  MemoryPeer& in_stream = connect();
  talk(in_head, get.substr(0, 10));
  talk(in_body, post_of("/size", 4) + "ab");
  talk(in_handler, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n");
  talk(in_stream, "GET /streams HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  stop();
  settle();
  EXPECT_TRUE(stopped());
  EXPECT_EQ(server_->counters().silent_connections.value(), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
  EXPECT_EQ(server_->counters().slow_readers.value(), 0U);
  for (const weir::detail::Counter& each : server_->counters().parse_errors)
    EXPECT_EQ(each.value(), 0U);
  EXPECT_EQ(server_->counters().connections_open.value(), 0U);
  EXPECT_EQ(answers(silent) + answers(in_head), "");
  EXPECT_TRUE(platform_.logged().empty());
}

// The handler answers its cancelled request with success.
TEST_F(DrainTest, StopBeginsNoPipelinedRequest) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get));
  stop();
  settle();
  EXPECT_TRUE(stopped());
  EXPECT_EQ(server_->counters().requests.value(), 1U);
}

TEST_F(DrainTest, LingeringEndsImmediatelyWithAStop) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "bad\r\n\r\n");
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
  stop();
  settle();
  EXPECT_TRUE(stopped());
}

}  // namespace
}  // namespace weir::http::drain_test
