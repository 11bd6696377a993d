// Tests of the WebSockets that a reverse proxy passes on.
#include "weir/web/proxy/detail/proxied_websocket.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::proxied_websocket_test {
namespace {

using namespace std::chrono_literals;

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

/// Returns a handshake with these headers.
std::string handshake(std::string_view path, std::string_view more = {}) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: shop.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         std::string(more) + "\r\n";
}

std::string by_client(int first, std::string_view payload) {
  return ws::frame_to(WsRole::server, ws::fin | first, payload);
}
std::string by_server(int first, std::string_view payload) {
  return ws::frame_to(WsRole::client, ws::fin | first, payload);
}
std::string close_of(unsigned code, std::string_view reason = {}) {
  return ws::number(code, 2).append(reason);
}

class ProxiedWebSocketTest : public ProxyFixture {
 protected:
  ProxiedWebSocketTest() {
    inner_.websocket("/echo", echo, {.subprotocols = {"v2"}, .origins = {"*"}});
    inner_.websocket("/record", [this](WebSocket& socket) { return record(socket); });
    inner_.websocket("/leave", [](WebSocket& socket) -> Task<> {
      std::ignore = co_await socket.close(WebSocketCloseCode{4001}, "bye");
    });
    inner_.websocket("/flood", [this](WebSocket& socket) { return flood(socket); });
    inner_.websocket("/stall", [](WebSocket&) -> Task<> { std::ignore = co_await sleep(1h); });
    inner_.get("/headers", [this](const Request& request) {
      inner_headers_.clear();
      for (std::size_t index = 0; index < request.head().header_count(); ++index) {
        const HeaderField field = request.head().header_at(index);
        inner_headers_.append(field.name).append(": ").append(field.value).append("\n");
      }
      Response out = accept_websocket(request, &echo);
      out.add_header("Set-Cookie", "a=b");
      return out;
    });
    inner_.get("/plain", [] { return text("plain"); });
    inner_.get("/page/{size}", [](std::size_t size) {
      Response out = text(std::string(size, 'x'), Status::forbidden);
      out.add_header("X-Reason", "closed");
      return out;
    });
  }

  /// Reads until the end, and records how it ends.
  Task<> record(WebSocket& socket) {
    for (;;) {
      const auto message = co_await socket.read();
      if (!message) break;
    }
    const auto code = static_cast<int>(socket.close_code());
    recorded_.push_back(std::to_string(code) + " " + std::string(socket.close_reason()));
  }
  Task<> flood(WebSocket& socket) {
    const std::string piece(10'000, 'x');
    for (;;) {
      const auto sent = co_await socket.send(piece);
      if (!sent) co_return;
      flooded_ += piece.size();
    }
  }

  static Task<std::string> exchange(MemoryPeer& peer, std::string text) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t sent = peer.send(rest);
      rest.remove_prefix(sent);
      std::ignore = co_await sleep(1ms);
      if (sent == 0) break;
    }
    std::ignore = co_await sleep(2ms);
    co_return peer.take();
  }
  /// Waits some times, so that each step of the connections can follow the last one.
  static Task<> pass_steps() {
    for (int count = 0; count < 10; ++count) std::ignore = co_await sleep(1ms);
  }
  std::uint64_t proxied_websockets() const {
    const MetricSnapshot snapshot = loop_->metrics().read();
    for (const Metric& each : snapshot.metrics()) {
      if (each.name == "http proxy websockets") return each.value;
    }
    return 0;
  }
  std::uint64_t inner_websockets() const {
    return inner_server_->counters().websockets_open.value();
  }
  void with_inner(const Body& use, ReverseProxyOptions options = {}) {
    with_inner_server(inner_, std::move(options), use, PlainHttp2::off, inner_limits_);
  }

  Router inner_;
  Limits inner_limits_;
  std::vector<std::string> recorded_;
  std::string inner_headers_;
  std::size_t flooded_ = 0;
};

TEST_F(ProxiedWebSocketTest, MessagesPassInBothDirections) {
  std::string seen;
  const auto talk = [&seen](WebSocket& socket) -> Task<Result<>> {
    EXPECT_EQ(socket.subprotocol(), "v2");
    std::string large(300'000, 'x');
    for (std::size_t at = 0; at < large.size(); at += 101) large[at] = static_cast<char>(at % 89);
    for (const std::string_view text : {std::string_view("hello"), std::string_view(large)}) {
      for (const bool is_text : {true, false}) {
        const WebSocketMessage sent{.is_text = is_text, .bytes = to_bytes(text)};
        WEIR_CO_TRY(co_await socket.send(sent));
        WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
        EXPECT_EQ(message.is_text, is_text);
        EXPECT_TRUE(message.text() == text);
        seen += "m";
      }
    }
    co_return {};
  };
  with_inner([&talk, this](Client& client) -> Task<> {
    ClientWebSocketOptions options;
    options.subprotocols = {"v1", "v2"};
    const auto ended = co_await client.websocket("ws://127.0.0.1/echo", talk, std::move(options));
    EXPECT_TRUE(ended) << ended.error().message();
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(inner_websockets(), 0U);
  });
  EXPECT_EQ(seen, "mmmm");
}

TEST_F(ProxiedWebSocketTest, FragmentsPassWithPingsBetweenThem) {
  with_inner([this](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    std::string input = handshake("/echo") + ws::frame_to(WsRole::server, ws::text_frame, "he") +
                        by_client(ws::ping_frame, "p") + by_client(0, "llo");
    const std::string answer = co_await exchange(peer, std::move(input));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
    EXPECT_TRUE(answer.ends_with(by_server(ws::pong_frame, "p") + by_server(1, "hello")));
    const std::string closed = co_await exchange(peer, by_client(ws::close_frame, close_of(1000)));
    EXPECT_EQ(closed, by_server(ws::close_frame, close_of(1000)));
    EXPECT_TRUE(peer.ended());
  });
}

TEST_F(ProxiedWebSocketTest, MessagesPassOverHttp2) {
  plain_http2_ = PlainHttp2::prior_knowledge;
  with_inner([this](Client&) -> Task<> {
    using namespace frames;
    MemoryPeer& peer = connect();
    Receiver receiver;
    const auto talk = [&](std::string input) -> Task<std::string> {
      auto sending = exchange(peer, std::move(input));
      const std::string answer = co_await std::move(sending);
      co_return receiver.read(answer);
    };
    const auto connect_to = [](std::uint32_t stream, std::string_view path) {
      return headers(stream,
                     block({{":method", "CONNECT"},
                            {":protocol", "websocket"},
                            {":scheme", "http"},
                            {":path", path},
                            {":authority", "shop.test"},
                            {"sec-websocket-version", "13"},
                            {"sec-websocket-protocol", "v1, v2"}}),
                     FrameFlag::end_headers);
    };
    const std::string opened = co_await talk(preface() + connect_to(1, "/echo"));
    EXPECT_NE(opened.find("head 1 :status=200"), opened.npos) << opened;
    EXPECT_NE(opened.find("sec-websocket-protocol=v2"), opened.npos) << opened;
    EXPECT_EQ(opened.find("sec-websocket-accept"), opened.npos) << opened;
    const std::string echoed = co_await talk(data(1, by_client(ws::text_frame, "hello")));
    EXPECT_NE(echoed.find("data 1 " + by_server(ws::text_frame, "hello")), echoed.npos) << echoed;
    const std::string refused = co_await talk(connect_to(3, "/page/5"));
    EXPECT_NE(refused.find("head 3 :status=403"), refused.npos) << refused;
    EXPECT_NE(refused.find("data 3 xxxxx end"), refused.npos) << refused;
    const std::string ignored = co_await talk(connect_to(5, "/plain"));
    EXPECT_NE(ignored.find("head 5 :status=502"), ignored.npos) << "200 would open a tunnel";
    EXPECT_EQ(failures(), 0U) << "an upstream may ignore Upgrade";
    EXPECT_EQ(inner_websockets(), 1U);
    const std::string reset = co_await talk(rst_stream(1));
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(inner_websockets(), 0U) << "the stream is the client";
  });
}

TEST_F(ProxiedWebSocketTest, UpstreamGetsTheHandshakeOfTheClient) {
  with_inner([this](Client&) -> Task<> {
    std::string input =
        handshake("/headers",
                  "Origin: https://app.test\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
                  "Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\nCookie: x=y\r\n");
    const std::string answer = co_await exchange(connect(), std::move(input));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
    for (const std::string_view line :
         {"Origin: https://app.test\n", "Sec-WebSocket-Protocol: a, b, c\n", "Cookie: x=y\n",
          "X-Forwarded-For: 127.0.0.1\n", "X-Forwarded-Host: shop.test\n", "Via: 1.1 weir\n",
          "Upgrade: websocket\n", "Connection: Upgrade\n", "Host: 127.0.0.1:85\n"}) {
      EXPECT_NE(inner_headers_.find(line), std::string::npos) << line << inner_headers_;
    }
    EXPECT_EQ(inner_headers_.find("Extensions"), std::string::npos);
    EXPECT_EQ(inner_headers_.find("dGhlIHNhbXBsZSBub25jZQ"), std::string::npos) << "its own key";
  });
}

TEST_F(ProxiedWebSocketTest, ClientGetsTheHeadersOfTheUpstream) {
  ReverseProxyOptions options;
  options.preserve_host = true;
  const auto use = [this](Client&) -> Task<> {
    std::string input = handshake("/headers", "Origin: http://shop.test\r\n");
    const std::string answer = co_await exchange(connect(), std::move(input));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
    EXPECT_NE(answer.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), answer.npos);
    EXPECT_NE(answer.find("Set-Cookie: a=b\r\n"), answer.npos) << answer;
    EXPECT_NE(answer.find("Via: 1.1 weir\r\n"), answer.npos) << answer;
    for (const std::string_view once : {"Upgrade: ", "Connection: ", "Sec-WebSocket-Accept: "}) {
      EXPECT_EQ(answer.find(once), answer.rfind(once)) << once << answer;
    }
  };
  with_inner(use, options);
}

TEST_F(ProxiedWebSocketTest, RefusalIsPassedOn) {
  with_inner([this](Client&) -> Task<> {
    for (const std::size_t size : {0U, 5U, 16'000U, 50'000U, 200'000U}) {
      const std::string path = "/page/" + std::to_string(size);
      std::string input = handshake(path);
      MemoryPeer& peer = connect();
      std::string answer = co_await exchange(peer, std::move(input));
      for (int count = 0; count < 20; ++count) answer += co_await exchange(peer, "");
      const auto responses = sim::parse_http_responses(answer);
      EXPECT_EQ(sim::statuses_of(responses), "403") << size;
      EXPECT_EQ(responses[0].body, std::string(size, 'x'));
      EXPECT_EQ(responses[0].header("X-Reason"), "closed");
      answer = co_await exchange(peer, handshake("/echo"));
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << "the connection is still usable";
    }
    const std::string missing = co_await exchange(connect(), handshake("/none"));
    EXPECT_TRUE(missing.starts_with("HTTP/1.1 404 ")) << missing;
    const std::string plain = co_await exchange(connect(), get("/echo"));
    EXPECT_TRUE(plain.starts_with("HTTP/1.1 426 ")) << plain;
    EXPECT_NE(plain.find("Upgrade: websocket\r\n"), plain.npos) << plain;
  });
}

TEST_F(ProxiedWebSocketTest, InvalidHandshakeDoesNotReachTheUpstream) {
  std::string old = handshake("/", "Connection: close\r\n");
  old.replace(old.find("Version: 13"), 11, "Version: 12");
  std::string keyless = handshake("/", "Connection: close\r\n");
  keyless.replace(keyless.find("dGhl"), 4, "");
  const std::string bad_list = "Connection: close\r\nSec-WebSocket-Protocol: a b\r\n";
  EXPECT_EQ(statuses({}, old), "426");
  EXPECT_EQ(statuses({}, keyless), "400");
  EXPECT_EQ(statuses({}, handshake("/", bad_list)), "400");
  EXPECT_EQ(upstream_requests().size(), 0U);
}

TEST_F(ProxiedWebSocketTest, CloseIsPassedOnWithItsCodeAndReason) {
  with_inner([this](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    std::string input = handshake("/leave");
    const std::string answer = co_await exchange(peer, std::move(input));
    EXPECT_TRUE(answer.ends_with(by_server(ws::close_frame, close_of(4001, "bye")))) << answer;
    std::ignore = co_await exchange(peer, by_client(ws::close_frame, close_of(4001)));
    EXPECT_TRUE(peer.ended());
    for (const std::string& payload : {close_of(3000, "why"), std::string()}) {
      input = handshake("/record") + by_client(ws::close_frame, payload);
      std::ignore = co_await exchange(connect(), std::move(input));
    }
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(inner_websockets(), 0U);
  });
  EXPECT_EQ(recorded_, (std::vector<std::string>{"3000 why", "1005 "}));
}

TEST_F(ProxiedWebSocketTest, LostClientClosesTheUpstream) {
  with_inner([this](Client&) -> Task<> {
    for (const bool resets : {false, true}) {
      MemoryPeer& peer = connect();
      const std::string answer = co_await exchange(peer, handshake("/record"));
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
      EXPECT_EQ(inner_websockets(), 1U);
      if (resets) {
        peer.reset();
      } else {
        peer.close();
      }
      co_await pass_steps();
      EXPECT_EQ(inner_websockets(), 0U);
    }
    // A violation of the protocol ends the client's side with another code.
    const std::string violation = co_await exchange(connect(), handshake("/record") + "\xff\xff");
    EXPECT_TRUE(violation.ends_with(by_server(ws::close_frame, close_of(1002)))) << violation;
    co_await pass_steps();
    EXPECT_EQ(inner_websockets(), 0U);
  });
  EXPECT_EQ(recorded_, (std::vector<std::string>{"1001 ", "1001 ", "1001 "}));
}

TEST_F(ProxiedWebSocketTest, ClientThatLeavesBeforeTheAnswerEndsTheHandshake) {
  Step silent;
  silent.answer.clear();
  silent.pause = 1h;
  with_proxy({{silent}}, {}, [this](Client&) -> Task<> {
    const std::size_t before = platform_.open_descriptors();
    MemoryPeer& peer = connect();
    std::ignore = co_await exchange(peer, handshake("/"));
    EXPECT_EQ(platform_.open_descriptors(), before + 3) << "both servers and the client";
    peer.reset();
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(platform_.open_descriptors(), before + 1) << "only the upstream, which waits";
  });
}

TEST_F(ProxiedWebSocketTest, SlowClientSlowsTheUpstreamDown) {
  with_inner([this](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send(handshake("/flood")), 0U);
    std::ignore = co_await sleep(1s);
    const std::size_t filled = flooded_;
    EXPECT_GT(filled, 100'000U);
    EXPECT_LT(filled, 1024U * 1024U);
    std::ignore = co_await sleep(5s);
    EXPECT_EQ(flooded_, filled) << "it does not grow";
    for (int count = 0; count < 20; ++count) std::ignore = co_await exchange(peer, "");
    EXPECT_GT(flooded_, filled);
    peer.reset();
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(inner_websockets(), 0U);
  });
}

TEST_F(ProxiedWebSocketTest, StalledUpstreamSlowsTheClientDown) {
  with_inner([this](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    std::ignore = co_await exchange(peer, handshake("/stall"));
    const std::string message = by_client(ws::binary_frame, std::string(10'000, 'x'));
    std::size_t taken = 0;
    for (bool full = false; !full && taken < 10'000'000;) {
      const std::size_t sent = peer.send(message);
      taken += sent;
      full = sent < message.size();
      std::ignore = co_await sleep(1ms);
    }
    EXPECT_LT(taken, 2'000'000U);
    std::ignore = co_await sleep(10s);
    EXPECT_EQ(inner_websockets(), 1U) << "it may be slow";
    std::ignore = co_await sleep(20s);
    EXPECT_NE(peer.take().find(close_of(1014)), std::string::npos) << "but not for ever";
    peer.reset();
  });
}

TEST_F(ProxiedWebSocketTest, LostClientFreesItsSlotWhileTheUpstreamStalls) {
  with_inner([this](Client&) -> Task<> {
    for (const bool resets : {false, true}) {
      MemoryPeer& peer = connect();
      std::ignore = co_await exchange(peer, handshake("/stall"));
      const std::string message = by_client(ws::binary_frame, std::string(10'000, 'x'));
      while (peer.send(message) == message.size()) std::ignore = co_await sleep(1ms);
      if (resets) {
        peer.reset();
      } else {
        peer.close();
      }
      // The end of a client comes behind messages, which the upstream may still take.
      const Duration most = resets ? 1s : 21s;
      std::ignore = co_await sleep(most);
      EXPECT_EQ(proxied_websockets(), 0U) << resets;
    }
  });
}

TEST_F(ProxiedWebSocketTest, DrainClosesBothSidesInTime) {
  with_inner([this](Client&) -> Task<> {
    MemoryPeer& good = connect();
    MemoryPeer& silent = connect();
    MemoryPeer& stalled = connect();
    std::ignore = co_await exchange(good, handshake("/record"));
    std::ignore = co_await exchange(silent, handshake("/record"));
    std::ignore = co_await exchange(stalled, handshake("/flood"));
    EXPECT_EQ(inner_websockets(), 3U);
    drain();
    const std::string closed = co_await exchange(good, "");
    EXPECT_EQ(closed, by_server(ws::close_frame, close_of(1001)));
    std::ignore = co_await exchange(good, by_client(ws::close_frame, close_of(1001)));
    EXPECT_TRUE(good.ended());
    std::ignore = co_await sleep(5s);
    EXPECT_TRUE(silent.was_reset() || silent.ended());
    EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
    EXPECT_EQ(inner_websockets(), 0U);
  });
}

/// An upstream that sends the begin of its answer: 101, a message and a Close.
class VanishingUpstream {
 public:
  VanishingUpstream(std::size_t count, bool resets) : count_(count), resets_(resets) {}

  Task<> listen(Scope& scope, std::size_t& head_size, std::size_t& size) {
    auto listener = co_await tcp::listen(Endpoint::loopback(85));
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    scope.spawn(serve(std::move(*listener), head_size, size));
  }

 private:
  Task<> serve(tcp::Listener listener, std::size_t& head_size, std::size_t& size) {
    auto stream = co_await listener.accept();
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    std::string request;
    while (!request.ends_with("\r\n\r\n")) {
      const auto piece = co_await stream->read();
      EXPECT_TRUE(piece);
      if (!piece) co_return;
      request += piece->text();
    }
    constexpr std::string_view name = "Sec-WebSocket-Key: ";
    const WsAccept accept =
        websocket_accept(request.substr(request.find(name) + name.size(), WsKey().size()));
    std::string answer =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Accept: " +
        std::string(accept.data(), accept.size()) + "\r\n\r\n";
    head_size = answer.size();
    answer += by_server(ws::text_frame, "hello") + by_server(ws::close_frame, close_of(1000));
    size = answer.size();
    const auto written = co_await stream->write(answer.substr(0, count_));
    EXPECT_TRUE(written);
    if (!resets_) std::ignore = stream->finish_writing();
    while (!resets_) {
      const auto piece = co_await stream->read();
      if (!piece) break;
    }
  }

  std::size_t count_;
  bool resets_;
};

TEST_F(ProxiedWebSocketTest, UpstreamMayVanishAtEachByte) {
  upstreams_ = {"http://127.0.0.1:85"};
  with_proxy({}, {}, [this](Client&) -> Task<> {
    std::size_t head_size = 1000;
    std::size_t size = 1000;
    for (std::size_t count = 0; count < 2 * size + 1; ++count) {
      const std::size_t sent = count / 2;
      VanishingUpstream upstream(sent, count % 2 != 0);
      const auto body = [&](Scope& scope) -> Task<> {
        co_await upstream.listen(scope, head_size, size);
        MemoryPeer& peer = connect();
        std::string answer = co_await exchange(peer, handshake("/"));
        if (sent < head_size) {
          EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << sent << answer;
          scope.cancel();
          co_return;
        }
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << sent << answer;
        const std::string code = close_of(sent < size ? 1014 : 1000);
        EXPECT_TRUE(answer.ends_with(by_server(ws::close_frame, code))) << sent << answer;
        std::ignore = co_await exchange(peer, by_client(ws::close_frame, code));
        EXPECT_TRUE(peer.ended()) << sent;
        scope.cancel();
      };
      std::ignore = co_await with_scope(OnFailure::isolate, body);
    }
    EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
  });
}

TEST_F(ProxiedWebSocketTest, WrongAcceptIsBadGateway) {
  Step wrong;
  wrong.answer =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
  EXPECT_EQ(statuses({{wrong}}, handshake("/", "Connection: close\r\n")), "502");
}

TEST_F(ProxiedWebSocketTest, AnotherUpstreamIsTriedAndTimeoutsAreLimited) {
  upstreams_ = {"http://127.0.0.1:89", "http://127.0.0.1:81"};
  Step silent;
  silent.answer.clear();
  silent.pause = 1h;
  ReverseProxyOptions options;
  options.client.limits.head_timeout = 2s;
  const std::string request = handshake("/", "Connection: close\r\n");
  EXPECT_EQ(statuses({}, request), "200") << "an upstream without WebSockets";
  EXPECT_EQ(statuses({{silent}}, request, options), "504");
}

TEST_F(ProxiedWebSocketTest, BoundCountsTheSideOfTheUpstream) {
  ReverseProxyOptions options;
  const std::size_t bound = websocket_bytes_max(options);
  EXPECT_GT(bound, 6 * options.websocket.output_max);
  EXPECT_LT(bound, 16 * options.websocket.output_max) << "messages are not collected";
}

}  // namespace
}  // namespace weir::http::proxied_websocket_test
