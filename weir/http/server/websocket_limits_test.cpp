// Tests of the memory that the peers of WebSockets can make a server hold.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/http.hpp"
#include "weir/http/test/memory_bound_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http/ws/detail/extension.hpp"

namespace weir::http::websocket_limits_test {
namespace {

constexpr std::string_view handshake =
    "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

constexpr WebSocketCompression compression{
    .send_window_bits = 15, .receive_window_bits = 15, .bytes_min = 0};

Limits websocket_limits() {
  Limits limits = small_limits();
  limits.body_max = 0;
  limits.websocket.message_bytes_max = 100'000;
  return limits;
}

std::string piece(int first, std::string_view payload) {
  return ws::frame_to(WsRole::server, first, payload);
}

class WebSocketMemoryTest : public HttpTest {
 protected:
  WebSocketMemoryTest() {
    routes_.websocket("/ws", echo);
    routes_.websocket("/compressed", echo, {.compression = compression});
    serve(limits_);
    MemoryPeer& first = connect();
    talk(first, handshake);
    first.reset();
    pass(std::chrono::seconds(1));
    rest_ = bytes();
  }
  std::size_t bytes() {
    loop_->blocks().collect();
    return heap_bytes() - loop_->blocks().cached_bytes();
  }
  const Limits limits_ = websocket_limits();
  std::size_t rest_ = 0;
};

TEST_F(WebSocketMemoryTest, StaysWithinTheBound) {
  const MemoryBound bound = memory_bound(limits_, {.handler_bytes = 1024, .websockets = true});
  const MemoryBound without = memory_bound(limits_, {.handler_bytes = 1024});
  EXPECT_GT(bound.connection, without.connection);
  std::vector<MemoryPeer*> all;
  for (std::size_t count = 0; count < limits_.connections_max; ++count) {
    all.push_back(&connect());
    EXPECT_TRUE(talk(*all.back(), handshake).starts_with("HTTP/1.1 101"));
  }
  std::size_t most = 0;
  // Large pieces of a message that does not end, then a Close that answers nothing. The peers read
  // no echo before.
  const std::string large(49'000, 'x');
  for (const std::string& input :
       {piece(ws::text_frame | ws::fin, large), piece(ws::text_frame | ws::fin, large),
        piece(ws::text_frame, large), piece(0, large)}) {
    for (MemoryPeer* each : all) {
      std::string_view rest = input;
      while (!rest.empty()) {
        const std::size_t sent = each->send(rest);
        rest.remove_prefix(sent);
        settle();
        most = std::max(most, bytes() - rest_);
        if (sent == 0) break;
      }
    }
  }
  EXPECT_GT(most, limits_.connections_max * 90'000) << "the messages are held";
  EXPECT_LE(most, bound.in_use());
}

class TopicMemoryTest : public HttpTest {
 protected:
  using Room = Topic<SlowSubscriber::drop_newest>;
  static constexpr std::size_t subscribers = 4;
  static constexpr std::size_t message_bytes = 20'000;

  TopicMemoryTest() {
    routes_.websocket("/ws", [this](WebSocket& socket) -> Task<Result<>> {
      const TopicSubscription subscription = topic_->subscribe(socket);
      for (;;) WEIR_CO_TRY(co_await socket.read());
    });
    serve(websocket_limits());
  }
  ~TopicMemoryTest() { shut_down(); }
  static TopicOptions options(std::size_t capacity) {
    return {.capacity = capacity, .on_way_max = 16};
  }
  /// Returns the bytes that are in use when subscribers that read nothing wait for different
  /// messages, or for none.
  std::size_t bytes_held(std::size_t capacity, bool publishes = true) {
    topic_.emplace(options(capacity));
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < subscribers; ++count) {
      peers.push_back(&connect());
      EXPECT_TRUE(talk(*peers.back(), handshake).starts_with("HTTP/1.1 101"));
      // Each of the others loses all of these messages, and the new subscriber loses the last one.
      const std::uint64_t before = topic_->statistics().dropped;
      for (std::size_t sent = 0; publishes && topic_->statistics().dropped <= before + sent * count;
           ++sent) {
        EXPECT_TRUE(topic_->publish(std::string(message_bytes, '.')));
        settle();
      }
    }
    loop_->blocks().collect();
    const std::size_t held = heap_bytes() - loop_->blocks().cached_bytes();
    for (MemoryPeer* each : peers) each->reset();
    settle();
    return held;
  }

 private:
  std::optional<Room> topic_;
};

TEST_F(TopicMemoryTest, StaysWithinTheBound) {
  const auto bound = [](std::size_t capacity, std::size_t readers) {
    return memory_bound(options(capacity),
                        {.message_bytes_max = message_bytes, .subscribers = readers});
  };
  std::ignore = bytes_held(1);  // memory that later rounds use again
  const std::size_t none = bytes_held(1, false);
  const std::size_t few = bytes_held(1);
  const std::size_t many = bytes_held(9);
  ASSERT_GT(many, few + 8 * subscribers * message_bytes) << "the subscribers share no message";
  EXPECT_LE(many - few, bound(9, subscribers) - bound(1, subscribers));
  // A connection that sends has frames beside those of its ring.
  EXPECT_GT(few - none, 2 * subscribers * message_bytes);
  EXPECT_LE(few - none, bound(1, subscribers) - bound(1, 0));
  // Messages on their way need a frame each, whatever the subscribers hold.
  EXPECT_GT(bound(1, 0), options(1).on_way_max * message_bytes);
  const std::uint64_t two_cores =
      memory_bound(options(1), {.message_bytes_max = message_bytes, .cores = 2});
  EXPECT_GT(two_cores, bound(1, 0) + options(1).on_way_max * message_bytes);
  EXPECT_EQ(memory_bound({.capacity = std::numeric_limits<std::size_t>::max()},
                         {.message_bytes_max = 1, .subscribers = 1}),
            std::numeric_limits<std::uint64_t>::max());
}

TEST_F(WebSocketMemoryTest, StaysWithinTheBoundWithCompression) {
  if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  const MemoryBound bound = memory_bound(
      limits_, {.handler_bytes = 1024, .websockets = true, .websocket_compression = compression});
  const MemoryBound without = memory_bound(limits_, {.handler_bytes = 1024, .websockets = true});
  EXPECT_GT(bound.connection, without.connection + 300'000);
  EXPECT_GT(bound.core, without.core);
  std::string request(handshake);
  request.replace(request.find("/ws"), 3, "/compressed");
  request.insert(request.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  // A message that is echoed, and the begin of one that stays within its limit.
  WsDeflate client(*loop_, WsRole::client, {}, compression);
  const std::string text(30'000, 'x');
  std::string room(WsDeflate::room_for(text.size()), '\0');
  const MutableBytes out(reinterpret_cast<std::byte*>(room.data()), room.size());
  const auto compressed = [&](bool ends) {
    return room.substr(0, client.compress(to_bytes(text), ends, out));
  };
  const std::string whole = piece(ws::text_frame | ws::fin | 0x40, compressed(true));
  std::string begin = piece(ws::text_frame | 0x40, compressed(false));
  for (int count = 0; count < 2; ++count) begin += piece(0, compressed(false));
  std::size_t most = 0;
  for (std::size_t count = 0; count < limits_.connections_max; ++count) {
    MemoryPeer& peer = connect();
    EXPECT_TRUE(talk(peer, request).starts_with("HTTP/1.1 101"));
    const std::string echoed = talk(peer, whole);
    EXPECT_TRUE(echoed.starts_with("\xc1")) << echoed.size();
    EXPECT_EQ(talk(peer, begin), "");
    most = std::max(most, bytes() - rest_);
  }
  EXPECT_GT(most, limits_.connections_max * 90'000) << "the messages are held";
  EXPECT_LE(most, bound.in_use());
}

TEST_F(WebSocketMemoryTest, HoldsNothingForFragmentsOfOneByte) {
  MemoryPeer& peer = connect();
  talk(peer, handshake);
  const std::size_t before = bytes();
  std::string fragments = piece(ws::text_frame, "x");
  for (int count = 0; count < 1'000; ++count) fragments += piece(0, "x");
  std::size_t most = 0;
  for (int round = 0; round < 90; ++round) {
    EXPECT_EQ(talk(peer, fragments), "");
    fragments.replace(0, 1, 1, '\0');  // from now on a continuation
    most = std::max(most, bytes() - before);
  }
  EXPECT_LE(most, 400'000U) << "of 90,000 fragments";
}

TEST_F(WebSocketMemoryTest, FreesItsMemoryWhenItIsIdle) {
  MemoryPeer& peer = connect();
  talk(peer, handshake);
  pass(std::chrono::seconds(3));
  const std::size_t idle = blocks();
  EXPECT_EQ(talk(peer, piece(ws::text_frame | ws::fin, "hi")).size(), 4U);
  EXPECT_GT(blocks(), idle);
  pass(std::chrono::seconds(3));
  EXPECT_EQ(blocks(), idle);
  EXPECT_EQ(talk(peer, piece(ws::text_frame | ws::fin, "hi")).size(), 4U);
}

}  // namespace
}  // namespace weir::http::websocket_limits_test
