// Tests of compressed WebSockets of a server, against its own client and against bytes.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"

namespace weir::http::websocket_deflate_test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

constexpr std::string_view handshake =
    "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Extensions: x, permessage-deflate; client_max_window_bits\r\n\r\n";
// "Hello", compressed, and after another "Hello" with the same context (RFC 7692 §7.2.3).
constexpr std::string_view hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"sv;
constexpr std::string_view hello_again = "\xf2\x00\x11\x00\x00"sv;

constexpr int rsv1 = 0x40;
constexpr int text = ws::fin | rsv1 | ws::text_frame;
constexpr int plain_text = ws::fin | ws::text_frame;
constexpr int ping = ws::fin | ws::ping_frame;
constexpr int pong = ws::fin | ws::pong_frame;
constexpr int close = ws::fin | ws::close_frame;

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

Task<Result<>> echo_pieces(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage piece, co_await socket.read_piece());
    WEIR_CO_TRY(co_await socket.send_piece(piece));
  }
}

std::string noise(std::size_t size) {
  std::string bytes;
  std::mt19937 random(9);
  while (bytes.size() < size) bytes += static_cast<char>(random());
  return bytes;
}

class WebSocketDeflateTest : public HttpTest {
 protected:
  void SetUp() override {
    if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  }
  void route(const WebSocketCompression& compression) {
    routes_.websocket("/echo", echo, {.compression = compression});
    routes_.websocket("/pieces", echo_pieces, {.compression = compression});
    routes_.websocket("/plain", echo);
  }
  /// Opens a WebSocket. Returns the response of the handshake in `answer`.
  MemoryPeer& open(std::string& answer, std::string_view path = "/echo") {
    if (!server_) serve(limits_);
    std::string request(handshake);
    request.replace(4, 5, path);
    MemoryPeer& peer = connect();
    answer = talk(peer, request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101")) << answer;
    return peer;
  }
  MemoryPeer& open(std::string_view path = "/echo") {
    std::string answer;
    return open(answer, path);
  }
  std::string talk_all(MemoryPeer& peer, std::string_view input) {
    std::string answers = talk(peer, input);
    for (std::string more = answers; !more.empty(); answers += more) {
      settle();
      more = peer.take();
    }
    return answers;
  }
  static std::string frame(int first, std::string_view payload = {}) {
    return ws::frame_to(WsRole::server, first, payload);
  }
  static std::string answer(int first, std::string_view payload = {}) {
    return ws::frame_to(WsRole::client, first, payload);
  }
  static std::string closed(int code) {
    return answer(close, ws::number(static_cast<std::uint64_t>(code), 2));
  }
  Limits limits_;
};

TEST_F(WebSocketDeflateTest, IsOffByDefault) {
  route({});
  std::string response;
  MemoryPeer& peer = open(response, "/plain");
  EXPECT_EQ(response.find("Extensions"), response.npos) << response;
  EXPECT_EQ(talk(peer, frame(text, hello)), closed(1002)) << "RSV1 was not negotiated";
}

// A small frame becomes a large message. Other tasks run while it is decompressed.
TEST_F(WebSocketDeflateTest, DecompressesALargeMessageInSteps) {
  constexpr std::size_t size = 4 * 1024 * 1024;
  limits_.websocket.message_bytes_max = size;
  std::size_t received = 0;
  const auto read = [&](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    received = message.bytes.size();
    co_return {};
  };
  routes_.websocket("/read", read, {.compression = WebSocketCompression{}});
  MemoryPeer& peer = open("/read");
  auto deflater = compression::RawDeflater::make({}).value();
  std::vector<std::byte> payload(size / 8);
  const auto done =
      deflater.compress(std::vector<std::byte>(size), payload, compression::Flush::sync);
  ASSERT_TRUE(done.complete);
  payload.resize(done.produced - compression::deflate_message_tail.size());
  const std::string bytes = frame(ws::fin | rsv1 | ws::binary_frame, to_text(payload));
  ASSERT_EQ(peer.send(bytes), bytes.size());
  const auto ran = [this] { return loop_->counters().ran.value(); };
  const auto before = ran();
  settle();
  EXPECT_EQ(received, size);
  EXPECT_GE(ran() - before, 16U);
}

// The message has no output at all: 100,000 final blocks, which are empty.
TEST_F(WebSocketDeflateTest, LetsOthersRunWithinAMessageWithoutOutput) {
  std::size_t received = 1;
  const auto read = [&](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    received = message.bytes.size();
    co_return {};
  };
  routes_.websocket("/read", read, {.compression = WebSocketCompression{}});
  MemoryPeer& peer = open("/read");
  std::string blocks;
  for (int count = 0; count < 100'000; ++count) blocks.append("\x03\x00", 2);
  const std::string bytes = frame(ws::fin | rsv1 | ws::binary_frame, blocks + '\0');
  const auto turns = [this] { return loop_->counters().turns.value(); };
  const auto before = turns();
  talk(peer, bytes);
  EXPECT_EQ(received, 0U);
  EXPECT_GE(turns() - before, blocks.size() / compression::TurnWork::input_max);
}

// A topic compresses a message once for all connections whose messages stand alone.
TEST_F(WebSocketDeflateTest, CompressesTheMessagesOfATopicOnce) {
  Topic<SlowSubscriber::drop_oldest> topic;
  const auto subscribe = [&topic](WebSocket& socket) -> Task<Result<>> {
    const TopicSubscription subscription = topic.subscribe(socket);
    for (;;) WEIR_CO_TRY(co_await socket.read());
  };
  routes_.websocket("/alone", subscribe, {.compression = WebSocketCompression{}});
  routes_.websocket("/level", subscribe, {.compression = WebSocketCompression{.level = 9}});
  routes_.websocket("/context", subscribe,
                    {.compression = WebSocketCompression{.send_window_bits = 15}});
  routes_.websocket("/plain", subscribe);
  std::vector<MemoryPeer*> alone;
  for (int count = 0; count < 3; ++count) alone.push_back(&open("/alone"));
  const std::vector<MemoryPeer*> others{&open("/level"), &open("/context"), &open("/plain")};
  const std::string message(1000, 'a');
  ASSERT_TRUE(topic.publish(message));
  settle();
  EXPECT_EQ(WsDeflateCore::of(*loop_).compressed.value(), 1U);
  for (MemoryPeer* const each : others) EXPECT_EQ(each->take(), answer(plain_text, message));
  const std::string first = alone.front()->take();
  ASSERT_LT(first.size(), 50U);
  EXPECT_EQ(first, answer(text, first.substr(2)));
  for (std::size_t at = 1; at < alone.size(); ++at) EXPECT_EQ(alone[at]->take(), first);
  auto inflater = compression::RawInflater::make(15).value();
  std::string payload = first.substr(2) + std::string(to_text(compression::deflate_message_tail));
  std::vector<std::byte> received(2 * message.size());
  const auto done = inflater.decompress(to_bytes(payload), received);
  ASSERT_TRUE(done);
  EXPECT_EQ(to_text(Bytes(received).first(done->produced)), message);
  // Short, large and random messages are sent as they are.
  for (const std::string& plain : {std::string(127, 'a'), std::string(70'000, 'a')}) {
    ASSERT_TRUE(topic.publish(plain));
    settle();
    EXPECT_TRUE(talk_all(*alone.front(), {}) == answer(plain_text, plain)) << plain.size();
  }
  const std::string random = noise(1000);
  ASSERT_TRUE(topic.publish(to_bytes(random)));
  settle();
  EXPECT_TRUE(alone.front()->take() == answer(ws::fin | ws::binary_frame, random));
  shut_down();  // before the topic ends
}

TEST_F(WebSocketDeflateTest, EchoesTheExamplesOfTheRfc) {
  route({.send_window_bits = 15, .receive_window_bits = 15, .bytes_min = 0});
  std::string response;
  MemoryPeer& peer = open(response);
  EXPECT_NE(response.find("\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"), response.npos)
      << response;
  EXPECT_EQ(talk(peer, frame(text, hello)), answer(text, hello));
  EXPECT_EQ(talk(peer, frame(text, hello_again)), answer(text, hello_again));
  // Later answers refer to more than one "Hello".
  const std::string third = talk(peer, frame(plain_text, "Hello"));
  EXPECT_TRUE(third.starts_with("\xc1"sv) && third.size() < 8) << "one that was not compressed";
  const std::string parts = frame(ws::text_frame | rsv1, hello.substr(0, 3)) + frame(ping, "p") +
                            frame(ws::fin, hello.substr(3));
  EXPECT_EQ(talk(peer, parts), answer(pong, "p") + third);
  EXPECT_EQ(talk(peer, frame(text, "\x00"sv)), answer(plain_text, "")) << "an empty message";
}

TEST_F(WebSocketDeflateTest, NeedsNoContext) {
  route({.bytes_min = 0});
  std::string response;
  MemoryPeer& peer = open(response);
  EXPECT_NE(response.find("permessage-deflate; server_no_context_takeover; "
                          "client_no_context_takeover\r\n"),
            response.npos)
      << response;
  for (int count = 0; count < 2; ++count) {
    EXPECT_EQ(talk(peer, frame(text, hello)), answer(text, hello));
  }
  EXPECT_EQ(talk(peer, frame(text, hello_again)), closed(1007));
}

TEST_F(WebSocketDeflateTest, RejectsReservedBitsThatWereNotNegotiated) {
  route({});
  for (const int first : {ws::fin | 0x20 | ws::text_frame, ws::fin | 0x10 | ws::text_frame,
                          ping | rsv1, close | rsv1, ws::fin | rsv1 | 0x20 | ws::text_frame}) {
    EXPECT_EQ(talk(open(), frame(first, hello)), closed(1002)) << first;
  }
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, frame(ws::text_frame | rsv1, hello.substr(0, 3)) +
                           frame(ws::fin | rsv1, hello.substr(3))),
            closed(1002))
      << "only the first frame has the bit";
}

TEST_F(WebSocketDeflateTest, ClosesForInvalidMessages) {
  route({});
  EXPECT_EQ(talk(open(), frame(text, "Hello")), closed(1007));
  EXPECT_EQ(talk(open(), frame(text, "\x02\xff\xff\xff"sv)), closed(1007));
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, frame(text, "\x00\x01\x00\xfe\xff\xff"sv) + frame(text, hello)),
            closed(1007))
      << "no UTF-8, and nothing follows";
}

TEST_F(WebSocketDeflateTest, LimitsMessagesWhileTheyAreDecompressed) {
  limits_.websocket.message_bytes_max = 100'000;
  route({});
  WsDeflate client(*loop_, WsRole::client, {{false, 15}, {false, 15}}, {});
  std::string bomb;
  const std::string zeros(WsDeflate::slice_max, '\0');
  std::string room(WsDeflate::room_for(zeros.size()), '\0');
  auto* const out = reinterpret_cast<std::byte*>(room.data());
  for (int count = 0; count < 300; ++count) {
    const std::size_t size = client.compress(to_bytes(zeros), count == 299, {out, room.size()});
    bomb.append(room, 0, size);
  }
  EXPECT_GT(bomb.size(), 10'000U);
  EXPECT_EQ(talk_all(open(), frame(ws::fin | rsv1 | ws::binary_frame, bomb)), closed(1009));
  // A handler that reads pieces is protected in the same way.
  const std::string pieces = talk_all(open("/pieces"), frame(ws::fin | rsv1 | 2, bomb));
  EXPECT_TRUE(pieces.ends_with(closed(1009)));
}

/// Sends messages by a client of Weir, and expects them back.
class WebSocketDeflateEcho : public WebSocketDeflateTest,
                             public testing::WithParamInterface<WebSocketCompression> {};

TEST_P(WebSocketDeflateEcho, ReturnsAllMessages) {
  limits_.websocket.message_bytes_max = 10'000'000;
  route(GetParam());
  serve(limits_);
  std::vector<std::string> messages{"", "a", std::string(200, 'b'), noise(300),
                                    std::string(1'000'000, 'c')};
  std::string words;
  for (int count = 0; words.size() < 300'000; ++count) words += std::to_string(count * 7919) + " ";
  messages.push_back(words);
  messages.push_back(words);
  int echoed = 0;
  const auto talk = [&](WebSocket& socket) -> Task<Result<>> {
    for (const std::string& each : messages) {
      WEIR_CO_TRY(co_await socket.send(to_bytes(each)));
      WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
      EXPECT_TRUE(to_text(message.bytes) == each) << each.size();
      ++echoed;
    }
    co_return {};
  };
  const auto body = [&](Scope& scope) -> Task<> {
    Client client;
    for (const std::string_view path : {"/pieces", "/echo"}) {
      ClientWebSocketOptions options;
      options.limits = limits_.websocket;
      options.compression = GetParam();
      const auto ended = co_await client.websocket("ws://127.0.0.1:80" + std::string(path), talk,
                                                   std::move(options));
      EXPECT_TRUE(ended) << ended.error().message();
      // An echo of pieces would wait for a client that sends for long before it reads.
      messages.push_back(noise(500'000));
    }
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(echoed, 2 * static_cast<int>(messages.size()) - 3);
  EXPECT_GT(WsDeflateCore::of(*loop_).compressed.value(), 0U);
  EXPECT_EQ(WsDeflateCore::of(*loop_).rejected.value(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, WebSocketDeflateEcho,
    testing::Values(WebSocketCompression{},
                    WebSocketCompression{.send_window_bits = 15, .receive_window_bits = 15},
                    WebSocketCompression{.send_window_bits = 9, .receive_window_bits = 10},
                    WebSocketCompression{.send_window_bits = 12, .bytes_min = 0}));

TEST_F(WebSocketDeflateTest, SendsALargeMessageBetweenOthersInOrder) {
  const std::string large = noise(300'000);
  const auto send_all = [&large](WebSocket& socket) -> Task<Result<>> {
    const auto body = [&](Scope& scope) -> Task<Result<>> {
      // The other message comes while the first one has some frames to go.
      scope.spawn([](WebSocket& to) -> Task<Result<>> {
        co_await yield();
        co_return co_await to.send("behind");
      }(socket));
      co_return co_await socket.send(to_bytes(large));
    };
    co_return co_await with_scope(OnFailure::cancel_siblings, body);
  };
  routes_.websocket("/send", send_all, {.compression = WebSocketCompression{}});
  serve(limits_);
  std::vector<std::size_t> sizes;
  const auto body = [&](Scope& scope) -> Task<> {
    Client client;
    ClientWebSocketOptions options;
    options.compression = WebSocketCompression{};
    const auto read_all = [&sizes](WebSocket& socket) -> Task<Result<>> {
      for (;;) {
        WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
        sizes.push_back(message.bytes.size());
      }
    };
    const auto ended =
        co_await client.websocket("ws://127.0.0.1:80/send", read_all, std::move(options));
    EXPECT_TRUE(ended) << ended.error().message();
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{large.size(), 6}));
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

}  // namespace
}  // namespace weir::http::websocket_deflate_test
