#include "weir/web/events/events.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::events_test {
namespace {

using namespace std::chrono_literals;

std::string encoded(const ServerSentEvent& event) {
  const auto bytes = event.encode();
  return bytes ? std::string(bytes->text()) : bytes.error().message();
}

TEST(ServerSentEventTest, DataIsSplitIntoLines) {
  EXPECT_EQ(encoded({.data = "one"}), "data: one\n\n");
  EXPECT_EQ(encoded({.data = ""}), "data: \n\n");
  EXPECT_EQ(encoded({.data = "a\nb\r\nc\rd"}), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(encoded({.data = "a\n"}), "data: a\ndata: \n\n");
  EXPECT_EQ(encoded({.data = "a\n\nid: 9"}), "data: a\ndata: \ndata: id: 9\n\n");
}

TEST(ServerSentEventTest, FieldsAreWrittenBeforeTheData) {
  const ServerSentEvent all{.data = "x", .name = "add", .id = "7", .retry = 1500ms};
  EXPECT_EQ(encoded(all), "retry: 1500\nid: 7\nevent: add\ndata: x\n\n");
  EXPECT_EQ(encoded({.data = "x", .id = ""}), "id: \ndata: x\n\n");
}

TEST(ServerSentEventTest, IdAndNameAreOneLine) {
  const std::string refused = make_error_code(Errc::bad_input).message();
  for (const std::string_view bad :
       {std::string_view("a\nb"), std::string_view("a\rb"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(encoded({.data = "x", .name = bad}), refused);
    EXPECT_EQ(encoded({.data = "x", .id = bad}), refused);
  }
  EXPECT_EQ(encoded({.data = "x", .retry = -1ms}), refused);
}

/// Sends the text of Last-Event-ID, then an event in each second until it is cancelled.
Task<Result<>> tick(EventStream& stream) {
  const std::string first = "after " + std::string(stream.last_event_id());
  if (auto sent = co_await stream.send(first); !sent) co_return sent;
  for (int number = 1;; ++number) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    const std::string id = std::to_string(number);
    ServerSentEvent event;
    event.data = "tick";
    event.id = id;
    if (auto sent = co_await stream.send(event); !sent) co_return sent;
  }
}

class EventsTest : public HttpTest {
 protected:
  EventsTest() {
    routes_.get("/tick", [](const Request& request) { return events(request, tick); });
    routes_.get("/silent", [this](const Request& request) {
      EventStreamOptions options;
      options.retry = 2s;
      return events(request, options, &silent, &ended_);
    });
    routes_.get("/flood", [this](const Request& request) {
      return events(request, &flood, &sent_, &ended_);
    });
  }
  static Task<Result<>> silent(EventStream&, std::error_code* ended) {
    const Result<> slept = co_await sleep(1h);
    *ended = slept ? std::error_code() : slept.error();
    co_return slept;
  }
  static Task<Result<>> flood(EventStream& stream, std::size_t* count, std::error_code* ended) {
    const std::string text(8192, 'x');
    for (;;) {
      const Result<> sent = co_await stream.send(text);
      if (!sent) {
        *ended = sent.error();
        co_return sent;
      }
      ++*count;
    }
  }
  MemoryPeer& open(std::string_view path, std::string_view more = {}) {
    MemoryPeer& peer = connect();
    talk(peer,
         "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more) + "\r\n");
    return peer;
  }
  /// Returns the body of the response so far.
  static std::string body(MemoryPeer& peer) {
    const auto answers = sim::parse_http_responses(peer.received());
    return answers.empty() ? "" : answers[0].body;
  }

  std::error_code ended_;
  std::size_t sent_ = 0;
};

TEST_F(EventsTest, HeadAndCommentAreSentAtTheBegin) {
  serve();
  MemoryPeer& peer = open("/silent");
  const std::string text = peer.received();
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_NE(text.find("Content-Type: text/event-stream\r\n"), text.npos) << text;
  EXPECT_NE(text.find("Cache-Control: no-store\r\n"), text.npos) << text;
  EXPECT_NE(text.find("X-Accel-Buffering: no\r\n"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("retry: 2000\n\n\r\n")) << text;
}

TEST_F(EventsTest, EventsArriveWhenTheyAreSent) {
  serve();
  MemoryPeer& peer = open("/tick", "Last-Event-ID: 41\r\n");
  EXPECT_NE(peer.received().find("data: after 41\n\n"), std::string::npos);
  pass(1s);
  EXPECT_NE(peer.take().find("id: 1\ndata: tick\n\n"), std::string::npos);
  pass(1s);
  EXPECT_NE(peer.take().find("id: 2\ndata: tick\n\n"), std::string::npos);
}

TEST_F(EventsTest, SilentStreamGetsComments) {
  serve();
  MemoryPeer& peer = open("/silent");
  peer.take();
  pass(15s - 1ms);
  EXPECT_EQ(peer.take(), "");
  pass(1ms);
  EXPECT_EQ(peer.take(), "3\r\n:\n\n\r\n");
  pass(30s);
  EXPECT_EQ(peer.take(), "3\r\n:\n\n\r\n3\r\n:\n\n\r\n");
  MemoryPeer& busy = open("/tick");
  pass(40s);
  EXPECT_EQ(busy.received().find(":\n\n"), busy.received().rfind(":\n\n")) << "only the first";
}

TEST_F(EventsTest, SendWaitsForASlowClient) {
  serve({.write_rate = {10s, 240, 10s}});
  MemoryPeer& peer = open("/flood");
  settle();
  const std::size_t filled = sent_;
  EXPECT_GT(filled, 0U);
  pass(5s);
  EXPECT_EQ(sent_, filled) << "nothing is sent while the client does not read";
  peer.take();
  settle();
  EXPECT_GT(sent_, filled);
  pass(1min);
  EXPECT_EQ(ended_, Errc::timed_out) << "a client that does not read at all is closed";
  expect_at_rest();
}

TEST_F(EventsTest, DepartureOfTheClientCancelsTheHandler) {
  serve();
  open("/silent").reset();
  settle();
  EXPECT_EQ(ended_, Errc::cancelled);
  expect_at_rest();
}

TEST_F(EventsTest, ClientThatVanishesIsFoundByTheComments) {
  serve({.write_rate = {10s, 240, 10s}});
  MemoryPeer& peer = open("/silent");
  peer.take();
  platform_.unacked = 3;  // the kernel gets no acknowledgement any more
  pass(14s);
  EXPECT_FALSE(ended_);
  peer.reset();  // the kernel gives up
  pass(16s);
  EXPECT_EQ(ended_, Errc::cancelled);
  expect_at_rest();
}

TEST_F(EventsTest, LostClientCancelsAHandlerThatSendsNothing) {
  std::error_code flood_ended;
  routes_.get("/both", [&](const Request& request) {
    const auto both = [](EventStream& stream, std::size_t* count, std::error_code* lost,
                         std::error_code* ended) -> Task<Result<>> {
      const auto body = [&](Scope& scope) -> Task<Result<>> {
        scope.spawn(flood(stream, count, lost));
        co_return co_await silent(stream, ended);
      };
      co_return co_await with_scope(OnFailure::isolate, body);
    };
    return events(request, both, &sent_, &flood_ended, &ended_);
  });
  serve({.write_rate = {10s, 240, 10s}});
  open("/both");
  settle();
  pass(15s);
  EXPECT_EQ(flood_ended, Errc::timed_out);
  pass(15s);
  EXPECT_EQ(ended_, Errc::cancelled);
  expect_at_rest();
}

TEST_F(EventsTest, DrainCancelsTheHandlerAfterItsGrace) {
  serve();
  MemoryPeer& peer = open("/silent");
  drain();
  pass(999ms);
  EXPECT_FALSE(ended_);
  pass(1ms);
  EXPECT_EQ(ended_, Errc::cancelled);
  EXPECT_TRUE(peer.received().ends_with("\r\n0\r\n\r\n")) << "the response is complete";
  pass(100ms);
  EXPECT_TRUE(peer.ended());
  pass(1s);
  EXPECT_TRUE(stopped());
}

TEST_F(EventsTest, HandlerSeesTheDrain) {
  bool drained = false;
  routes_.get("/watch", [&](const Request& request) {
    const auto watch = [](EventStream& stream, bool* result) -> Task<Result<>> {
      while (!stream.draining()) {
        if (auto slept = co_await sleep(100ms); !slept) co_return slept;
      }
      *result = true;
      co_return co_await stream.send("bye");
    };
    return events(request, watch, &drained);
  });
  serve();
  MemoryPeer& peer = open("/watch");
  pass(1s);
  EXPECT_FALSE(drained);
  drain();
  pass(200ms);
  EXPECT_TRUE(drained);
  EXPECT_TRUE(peer.received().ends_with("data: bye\n\n\r\n0\r\n\r\n")) << peer.received();
}

TEST_F(EventsTest, ErrorOfTheHandlerCutsTheResponseOff) {
  routes_.get("/bad", [](const Request& request) {
    const auto fails = [](EventStream& stream) -> Task<Result<>> {
      ServerSentEvent event;
      event.name = "a\nb";
      const Result<> sent = co_await stream.send(event);
      EXPECT_EQ(sent.error(), Errc::bad_input);
      const Result<> good = co_await stream.send("still open");
      EXPECT_TRUE(good);
      co_return sent;
    };
    return events(request, fails);
  });
  serve();
  MemoryPeer& peer = open("/bad");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200-");
  EXPECT_NE(peer.received().find("data: still open\n\n"), std::string::npos);
}

TEST_F(EventsTest, AnExceptionOfTheHandlerCutsTheResponseOff) {
  routes_.get("/bad", [](const Request& request) {
    const auto throws = [](EventStream& stream) -> Task<Result<>> {
      std::ignore = co_await stream.send("still open");
      throw std::runtime_error("no news");
    };
    return events(request, throws);
  });
  serve();
  MemoryPeer& peer = open("/bad");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200-");
  settle();
  EXPECT_TRUE(peer.ended()) << "the comments end too: " << peer.received();
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged()[0].contains("no news")) << platform_.logged()[0];
}

TEST_F(EventsTest, TasksOfOneStreamSendInTurn) {
  routes_.get("/two", [](const Request& request) {
    const auto both = [](EventStream& stream) -> Task<Result<>> {
      const auto one = [](EventStream& shared, std::string text) -> Task<Result<>> {
        for (int count = 0; count < 20; ++count) {
          if (auto sent = co_await shared.send(text); !sent) co_return sent;
        }
        co_return {};
      };
      const auto body = [&](Scope& scope) -> Task<Result<>> {
        scope.spawn(one(stream, std::string(9000, 'a')));
        scope.spawn(one(stream, std::string(9000, 'b')));
        co_return {};
      };
      co_return co_await with_scope(body);
    };
    return events(request, both);
  });
  serve();
  MemoryPeer& peer = open("/two");
  for (int round = 0; round < 100 && !peer.received().ends_with("0\r\n\r\n"); ++round) settle();
  const std::string text = body(peer);
  EXPECT_EQ(text.size(), 3 + 40 * (6 + 9000 + 2U));
  EXPECT_EQ(text.find("ab"), text.npos);
}

TEST_F(EventsTest, EncodedEventIsSentAsItIs) {
  routes_.get("/encoded", [](const Request& request) {
    const auto once = [](EventStream& stream) -> Task<Result<>> {
      const ServerSentEvent event{.data = "x", .id = "7"};
      const auto bytes = event.encode();
      EXPECT_TRUE(bytes);
      co_return co_await stream.send(*bytes);
    };
    return events(request, once);
  });
  serve();
  EXPECT_EQ(body(open("/encoded")), ":\n\nid: 7\ndata: x\n\n");
}

}  // namespace
}  // namespace weir::http::events_test
