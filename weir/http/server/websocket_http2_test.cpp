// Tests of WebSocket routes over HTTP/2 (RFC 8441).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/extension.hpp"

namespace weir::http::websocket_http2_test {
namespace {

using namespace frames;
using namespace std::chrono_literals;

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

class WebSocketOverHttp2Test : public H2ConnectionFixture, public testing::Test {
 protected:
  WebSocketOverHttp2Test() {
    routes_.websocket("/ws", echo, {.subprotocols = {"chat"}});
    routes_.get("/", [] { return text("hello"); });
    routes_.get("/report", [this] {
      ++reports_;
      return text("report");
    });
    routes_.get("/stream", [] {
      return stream("text/plain", [](BodySink& sink) { return sink.write("hello"); });
    });
  }
  static std::string connect_to(std::uint32_t stream, std::string_view path,
                                std::string_view extensions = "x") {
    return headers(stream,
                   block({{":method", "CONNECT"},
                          {":protocol", "websocket"},
                          {":scheme", "http"},
                          {":path", path},
                          {":authority", "a"},
                          {"sec-websocket-version", "13"},
                          {"sec-websocket-extensions", extensions},
                          {"sec-websocket-protocol", "chat"}}),
                   FrameFlag::end_headers);
  }
  static std::string message(std::string_view payload) {
    return ws::frame_to(WsRole::server, ws::fin | ws::text_frame, payload);
  }
  static std::string close(int code) {
    return ws::frame_to(WsRole::server, ws::fin | ws::close_frame,
                        ws::number(static_cast<std::uint64_t>(code), 2));
  }

  int reports_ = 0;
};

TEST_F(WebSocketOverHttp2Test, AnotherProtocolIsNotImplemented) {
  begin();
  std::string other = block({{":method", "CONNECT"},
                             {":protocol", "connect-udp"},
                             {":scheme", "http"},
                             {":path", "/report"},
                             {":authority", "a"}});
  const std::string got = answer(headers(1, other, FrameFlag::end_headers));
  EXPECT_NE(got.find(":status=501"), got.npos) << got;
  EXPECT_EQ(reports_, 0);
}

TEST_F(WebSocketOverHttp2Test, EchoesOverOneOfSeveralStreams) {
  begin();
  const std::string opened = answer(connect_to(1, "/ws"));
  EXPECT_NE(opened.find(":status=200"), opened.npos) << opened;
  EXPECT_NE(opened.find("sec-websocket-protocol=chat"), opened.npos) << opened;
  EXPECT_EQ(opened.find("content-length"), opened.npos) << opened;
  EXPECT_EQ(opened.find("end"), opened.npos) << opened;
  EXPECT_EQ(server_->counters().responses.value(), 1U) << "its head is the response";
  const std::string echoed = answer(data(1, message("hello")));
  EXPECT_NE(echoed.find("\x81\x05hello"), echoed.npos) << echoed;
  const std::string other = answer(get(3, "/"));
  EXPECT_NE(other.find("hello"), other.npos) << other;
  const std::string closed = answer(data(1, close(1000)));
  EXPECT_NE(closed.find("\x88\x02\x03\xe8"), closed.npos) << closed;
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
  EXPECT_EQ(server_->counters().responses.value(), 2U);
}

TEST_F(WebSocketOverHttp2Test, CompressesMessages) {
  if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  constexpr WebSocketCompression compression{.bytes_min = 0};
  routes_.websocket("/compressed", echo, {.compression = compression});
  begin();
  const std::string opened = answer(connect_to(1, "/compressed", "permessage-deflate"));
  EXPECT_NE(opened.find("sec-websocket-extensions=permessage-deflate; "
                        "server_no_context_takeover; client_no_context_takeover"),
            opened.npos)
      << opened;
  constexpr std::string_view hello("\xf2\x48\xcd\xc9\xc9\x07\x00", 7);
  const std::string sent = ws::frame_to(WsRole::server, 0xc1, hello);
  const std::string echoed = answer(data(1, sent));
  EXPECT_NE(echoed.find("\xc1\x07" + std::string(hello)), echoed.npos) << echoed;
}

TEST_F(WebSocketOverHttp2Test, SendsMoreThanTheWindows) {
  begin();
  static_cast<void>(answer(connect_to(1, "/ws")));
  const std::string large = message(std::string(50'000, 'x'));
  std::string echoed;
  for (int count = 0; count < 2; ++count) {
    for (std::size_t at = 0; at < large.size(); at += 16'000) {
      echoed += answer(data(1, large.substr(at, 16'000)));
    }
  }
  const auto received_bytes = [&echoed] { return std::ranges::count(echoed, 'x'); };
  EXPECT_GT(received_bytes(), 65'000);
  EXPECT_LE(received_bytes(), 65'535) << "the windows";
  echoed += answer(window_update(0, 100'000) + window_update(1, 100'000));
  EXPECT_EQ(received_bytes(), 100'000);
}

TEST_F(WebSocketOverHttp2Test, EndsWithItsStreamAndItsConnection) {
  begin();
  static_cast<void>(answer(connect_to(1, "/ws") + connect_to(3, "/ws") + connect_to(5, "/ws")));
  EXPECT_EQ(server_->counters().websockets_open.value(), 3U);
  static_cast<void>(answer(rst_stream(1)));
  EXPECT_EQ(server_->counters().websockets_open.value(), 2U);
  static_cast<void>(answer(data(3, "", FrameFlag::end_stream)));
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U);
  peer_->reset();
  settle();
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
}

TEST_F(WebSocketOverHttp2Test, DrainsWithAClose) {
  begin();
  static_cast<void>(answer(connect_to(1, "/ws")));
  drain();
  const std::string closed = received();
  EXPECT_NE(closed.find("\x88\x02\x03\xe9"), closed.npos) << closed;
  static_cast<void>(answer(data(1, close(1001))));
  pass(2s);
  EXPECT_TRUE(stopped());
}

/// Sends two messages of 60,000 bytes.
Task<Result<>> send_twice(WebSocket& socket) {
  const std::string large(60'000, 'x');
  for (int count = 0; count < 2; ++count) WEIR_CO_TRY(co_await socket.send(large));
  WEIR_CO_TRY(co_await socket.read());
  co_return {};
}

TEST_F(WebSocketOverHttp2Test, WaitsForAPeerThatTakesBytesSlowly) {
  routes_.websocket("/twice", send_twice);
  Limits limits;
  limits.websocket.write_timeout = 3s;
  begin(limits);
  std::string sent = answer(connect_to(1, "/twice"));
  for (int second = 0; second < 12; ++second) {
    pass(1s);
    sent += answer(window_update(0, 5'000) + window_update(1, 5'000));
  }
  EXPECT_EQ(std::ranges::count(sent, 'x'), 120'000);
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U);
}

TEST_F(WebSocketOverHttp2Test, ResetsTheStreamOfAPeerThatTakesNothing) {
  routes_.websocket("/twice", send_twice);
  Limits limits;
  limits.websocket.write_timeout = 2s;  // before Limits::write_rate ends it
  begin(limits);
  static_cast<void>(answer(connect_to(1, "/twice")));
  pass(5s);
  const std::string ended = received();
  EXPECT_NE(ended.find("reset 1 8"), ended.npos) << ended;  // CANCEL (RFC 8441 §5)
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
}

TEST_F(WebSocketOverHttp2Test, EndsTheRequestWithTheHandshake) {
  int ends = 0;
  routes_.use([&ends](Request& request, Next next) -> Task<Response> {
    request.on_end(
        [&ends](Request&, const SentResponse& sent) { ends += sent.complete ? 1 : 100; });
    co_return co_await next(request);
  });
  begin();
  static_cast<void>(answer(connect_to(1, "/ws")));
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U);
  EXPECT_EQ(ends, 1) << "its route may be removed while the WebSocket is open";
  static_cast<void>(answer(rst_stream(1)));
  EXPECT_EQ(ends, 1);
}

TEST_F(WebSocketOverHttp2Test, RejectsOtherRequests) {
  routes_.get("/task", []() -> Task<Response> { co_return text("hello"); });
  begin();
  const std::string answered = answer(get(1, "/ws"));
  EXPECT_NE(answered.find(":status=400"), answered.npos) << answered;
  const std::string missing = answer(connect_to(3, "/none"));
  EXPECT_NE(missing.find(":status=404"), missing.npos) << missing;
  for (const auto& [id, path] :
       {std::pair(5U, "/"), std::pair(7U, "/stream"), std::pair(9U, "/task")}) {
    const std::string plain = answer(connect_to(id, path));
    EXPECT_NE(plain.find(":status=400"), plain.npos) << "a success opens a tunnel: " << plain;
    EXPECT_EQ(plain.find("hello"), plain.npos) << plain;
  }
}

}  // namespace
}  // namespace weir::http::websocket_http2_test
