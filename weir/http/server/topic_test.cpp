// Tests of topics on one core. tests/websocket_examples_test.cpp has two.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"

namespace weir::http::topic_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view handshake =
    "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

template <SlowSubscriber reaction>
class TopicFixture : public HttpFixture {
 public:
  explicit TopicFixture(std::size_t capacity = 4, std::size_t on_way_max = 4096)
      : topic_({.capacity = capacity, .on_way_max = on_way_max}) {
    routes_.websocket("/ws", [this](WebSocket& socket) -> Task<Result<>> {
      const TopicSubscription subscription = topic_.subscribe(socket);
      for (;;) WEIR_CO_TRY(co_await socket.read());
    });
    routes_.websocket("/half", [this](WebSocket& socket) -> Task<Result<>> {
      const TopicSubscription subscription = topic_.subscribe(socket);
      WEIR_CO_TRY(co_await socket.send_piece({.is_text = true, .ends = false, .bytes = {}}));
      WEIR_CO_TRY(co_await socket.read());
      co_return {};
    });
    if constexpr (reaction == SlowSubscriber::wait) {
      routes_.get("/publish", [this]() -> Task<Response> {
        for (; published_ < 20; ++published_) {
          const auto sent = co_await topic_.publish(large(published_));
          if (!sent) break;
        }
        co_return text("published\n");
      });
    }
    serve();
  }
  ~TopicFixture() { shut_down(); }
  MemoryPeer& open() {
    MemoryPeer& peer = connect();
    EXPECT_TRUE(talk(peer, handshake).starts_with("HTTP/1.1 101"));
    return peer;
  }
  static std::string message(std::string_view payload) {
    return ws::frame_to(WsRole::client, ws::fin | ws::text_frame, payload);
  }
  /// Returns all that the peer can receive, in order.
  std::string take_all(MemoryPeer& peer) {
    std::string all = peer.take();
    for (std::string more = all; !more.empty(); all += more) {
      settle();
      more = peer.take();
    }
    return all;
  }
  /// Returns the numbers of large messages, "0 1 5", from their first characters.
  static std::string numbers(std::string_view frames, std::size_t size) {
    std::string text;
    for (std::size_t at = 10; at < frames.size(); at += size + 10) text += frames[at];
    return text;
  }
  static std::string large(int number) {
    return std::string(1, static_cast<char>('a' + number)) + std::string(99'999, '.');
  }

  Topic<reaction> topic_;
  int published_ = 0;
};

TEST(Topics, ReachAllSubscribers) {
  TopicFixture<SlowSubscriber::drop_oldest> fixture;
  MemoryPeer& first = fixture.open();
  MemoryPeer& second = fixture.open();
  EXPECT_EQ(fixture.topic_.subscribers(), 2U);
  EXPECT_TRUE(fixture.topic_.publish("one"));
  EXPECT_TRUE(fixture.topic_.publish("two"));
  fixture.settle();
  EXPECT_EQ(first.take(), fixture.message("one") + fixture.message("two"));
  EXPECT_EQ(second.take(), fixture.message("one") + fixture.message("two"));
  second.reset();
  fixture.settle();
  EXPECT_EQ(fixture.topic_.subscribers(), 1U);
  fixture.pass(5s);  // the first one is idle
  EXPECT_TRUE(fixture.topic_.publish("three"));
  fixture.settle();
  EXPECT_EQ(first.take(), fixture.message("three"));
  EXPECT_EQ(fixture.topic_.publish("\xff").error(), Errc::bad_input);
  const TopicStatistics statistics = fixture.topic_.statistics();
  EXPECT_EQ(statistics.published, 3U);
  EXPECT_EQ(statistics.delivered, 5U);
  EXPECT_EQ(statistics.dropped, 0U);
}

TEST(Topics, DropNothingForAFastSubscriber) {
  TopicFixture<SlowSubscriber::drop_newest> fixture(2);
  MemoryPeer& peer = fixture.open();
  std::string expected;
  for (const std::string_view text : {"1", "2", "3", "4", "5", "6"}) {
    EXPECT_TRUE(fixture.topic_.publish(text));
    expected += fixture.message(text);
  }
  fixture.settle();
  EXPECT_EQ(peer.take(), expected);
  EXPECT_EQ(fixture.topic_.statistics().dropped, 0U);
}

TEST(Topics, DropTheOldestMessages) {
  TopicFixture<SlowSubscriber::drop_oldest> fixture;
  MemoryPeer& peer = fixture.open();
  for (int number = 0; number < 20; ++number) {
    EXPECT_TRUE(fixture.topic_.publish(fixture.large(number)));
    fixture.settle();
  }
  const std::string received = fixture.numbers(fixture.take_all(peer), 100'000);
  EXPECT_TRUE(received.starts_with("a")) << received;
  EXPECT_TRUE(received.ends_with("qrst")) << received;
  EXPECT_EQ(received.size() + fixture.topic_.statistics().dropped, 20U) << received;
  EXPECT_GT(fixture.topic_.statistics().dropped, 5U);
  EXPECT_EQ(fixture.topic_.statistics().delivered, received.size());
}

TEST(Topics, DropTheNewestMessages) {
  TopicFixture<SlowSubscriber::drop_newest> fixture;
  MemoryPeer& peer = fixture.open();
  for (int number = 0; number < 20; ++number) {
    EXPECT_TRUE(fixture.topic_.publish(fixture.large(number)));
    fixture.settle();
  }
  const std::string received = fixture.numbers(fixture.take_all(peer), 100'000);
  EXPECT_TRUE(received.starts_with("abcde")) << received;
  EXPECT_LT(received.size(), 15U) << received;
  EXPECT_EQ(received.size() + fixture.topic_.statistics().dropped, 20U) << received;
  EXPECT_EQ(fixture.topic_.statistics().delivered, received.size());
}

TEST(Topics, CloseSlowSubscribers) {
  TopicFixture<SlowSubscriber::close> fixture;
  MemoryPeer& slow = fixture.open();
  MemoryPeer& fast = fixture.open();
  std::string received;
  for (int number = 0; number < 20; ++number) {
    EXPECT_TRUE(fixture.topic_.publish(fixture.large(number)));
    fixture.settle();
    received += fixture.take_all(fast);
  }
  EXPECT_EQ(fixture.numbers(received, 100'000), "abcdefghijklmnopqrst");
  EXPECT_EQ(fixture.topic_.statistics().closed, 1U);
  fixture.pass(6s);
  EXPECT_EQ(fixture.topic_.subscribers(), 1U);
  EXPECT_TRUE(slow.was_reset() || !fixture.take_all(slow).empty());
}

TEST(Topics, WaitForSlowSubscribers) {
  TopicFixture<SlowSubscriber::wait> fixture;
  MemoryPeer& peer = fixture.open();
  MemoryPeer& publisher = fixture.connect();
  EXPECT_EQ(fixture.talk(publisher, "GET /publish HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  EXPECT_GT(fixture.published_, 3);
  EXPECT_LT(fixture.published_, 19) << "it waits";
  EXPECT_EQ(fixture.numbers(fixture.take_all(peer), 100'000), "abcdefghijklmnopqrst");
  EXPECT_EQ(fixture.published_, 20);
  EXPECT_EQ(fixture.topic_.statistics().dropped, 0U);
}

TEST(Topics, StopWaitingForASubscriberThatLeaves) {
  TopicFixture<SlowSubscriber::wait> fixture;
  MemoryPeer& peer = fixture.open();
  MemoryPeer& publisher = fixture.connect();
  EXPECT_EQ(fixture.talk(publisher, "GET /publish HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  EXPECT_LT(fixture.published_, 19) << "it waits";
  peer.reset();
  fixture.settle();
  EXPECT_EQ(fixture.published_, 20);
}

TEST(Topics, CloseASubscriberThatBlocksPublishersWithinAMessage) {
  TopicFixture<SlowSubscriber::wait> fixture;
  MemoryPeer& peer = fixture.connect();
  std::string request(handshake);
  request.replace(4, 3, "/half");
  EXPECT_TRUE(fixture.talk(peer, request).starts_with("HTTP/1.1 101"));
  MemoryPeer& publisher = fixture.connect();
  EXPECT_EQ(fixture.talk(publisher, "GET /publish HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  fixture.pass(15s);
  EXPECT_LT(fixture.published_, 19) << "it waits";
  fixture.pass(10s);
  EXPECT_EQ(fixture.published_, 20);
  EXPECT_EQ(fixture.topic_.subscribers(), 0U);
}

// 64 members get a message in one step of the loop. The 65th leaves before the next step.
TEST(Topics, EndAPassWhoseLastMembersHaveLeft) {
  struct Fixture : HttpFixture {
    explicit Fixture(bool compresses) {
      WebSocketOptions options;
      if (compresses) options.compression.emplace();
      routes_.websocket(
          "/ws",
          [this](WebSocket& socket) -> Task<Result<>> {
            subscriptions.push_back(topic.subscribe(socket));
            for (;;) WEIR_CO_TRY(co_await socket.read());
          },
          std::move(options));
      routes_.get("/publish", [this]() -> Task<Response> {
        EXPECT_TRUE(topic.publish(std::string(1000, 'a')));
        while (topic.statistics().delivered == 0) co_await yield();
        EXPECT_EQ(topic.statistics().delivered, 64U);
        subscriptions.pop_back();
        EXPECT_TRUE(topic.publish(std::string(1000, 'b')));
        co_return text("published\n");
      });
      serve();
    }
    ~Fixture() {
      subscriptions.clear();
      shut_down();
    }
    Topic<SlowSubscriber::drop_oldest> topic;
    std::vector<TopicSubscription> subscriptions;
  };
  for (const bool compresses : {false, true}) {
    SCOPED_TRACE(compresses);
    Fixture fixture(compresses);
    std::string request(handshake);
    request.insert(request.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    std::vector<MemoryPeer*> peers;
    for (int count = 0; count < 65; ++count) {
      peers.push_back(&fixture.connect());
      EXPECT_TRUE(fixture.talk(*peers.back(), request).starts_with("HTTP/1.1 101"));
    }
    fixture.talk(fixture.connect(), "GET /publish HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(fixture.topic.statistics().delivered, 2 * 64U);
    const std::string first = peers.front()->take();
    EXPECT_EQ(first.size() == 2 * 1004U, !compresses) << first.size();
    for (std::size_t at = 1; at < 64; ++at) EXPECT_EQ(peers[at]->take(), first);
    EXPECT_EQ(peers.back()->take(), "");
  }
}

TEST(Topics, MayEndWithTheirLastSubscriberWhileTheLoopRuns) {
  using Room = Topic<SlowSubscriber::drop_oldest>;
  struct Fixture : HttpFixture {
    Fixture() {
      routes_.websocket("/ws", [this](WebSocket& socket) -> Task<> {
        {
          const TopicSubscription subscription = room->subscribe(socket);
          std::ignore = co_await socket.read();
          EXPECT_TRUE(room->publish("on its way"));
        }
        room.reset();
        ended = true;
      });
      serve();
    }
    std::optional<Room> room{std::in_place};
    bool ended = false;
  };
  Fixture fixture;
  MemoryPeer& peer = fixture.connect();
  EXPECT_TRUE(fixture.talk(peer, handshake).starts_with("HTTP/1.1 101"));
  peer.send(ws::frame_to(WsRole::server, ws::fin | ws::text_frame, "the end"));
  fixture.settle();
  EXPECT_TRUE(fixture.ended);
}

TEST(Topics, RefuseMessagesWhenTooManyAreOnTheirWay) {
  TopicFixture<SlowSubscriber::drop_oldest> fixture(4, 10);
  MemoryPeer& peer = fixture.open();
  std::string expected;
  for (int round = 0; round < 2; ++round) {
    for (int count = 0; count < 10; ++count) {
      EXPECT_TRUE(fixture.topic_.publish("taken"));
      expected += fixture.message("taken");
    }
    EXPECT_EQ(fixture.topic_.publish("refused").error(), Errc::limit_reached);
    fixture.settle();
  }
  EXPECT_EQ(peer.take(), expected);
  EXPECT_EQ(fixture.topic_.statistics().published, 20U);
}

}  // namespace
}  // namespace weir::http::topic_test
