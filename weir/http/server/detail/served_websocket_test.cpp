// Tests of WebSocket routes over HTTP/1.1.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::served_websocket_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view handshake =
    "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

class WebSocketTest : public HttpTest {
 protected:
  WebSocketTest() { routes_.websocket("/echo", echo); }

  /// Opens a WebSocket and returns its peer. The head of the response was taken.
  MemoryPeer& open(std::string_view path = "/echo") {
    if (!server_) serve();
    std::string request(handshake);
    request.replace(4, 5, path);
    MemoryPeer& peer = connect();
    const std::string answer = talk(peer, request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
    return peer;
  }
  /// Sends `input` and returns all that comes back.
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
  static std::string close_payload(int code, std::string_view reason = {}) {
    return ws::number(static_cast<std::uint64_t>(code), 2) + std::string(reason);
  }
  static constexpr int text = ws::fin | ws::text_frame;
  static constexpr int binary = ws::fin | ws::binary_frame;
  static constexpr int close = ws::fin | ws::close_frame;
  static constexpr int ping = ws::fin | ws::ping_frame;
  static constexpr int pong = ws::fin | ws::pong_frame;
};

TEST_F(WebSocketTest, ExceptionOfAHandlerIsOneLineOfTheLog) {
  routes_.websocket("/quote", [](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    throw std::runtime_error(std::string(message.text()));
  });
  MemoryPeer& peer = open("/quote");
  talk_all(peer, frame(text, "a\nweir: forged \x1b[2J\xc2\x9b\xe2\x80\xae"));
  ASSERT_FALSE(platform_.logged().empty());
  EXPECT_EQ(platform_.logged().back(),
            "weir: GET /quote: handler failed: exception: "
            "a\\x0aweir: forged \\x1b[2J\\xc2\\x9b\\xe2\\x80\\xae");
}

TEST_F(WebSocketTest, AcceptsTheHandshake) {
  serve();
  const std::string answer = talk(connect(), handshake);
  EXPECT_NE(answer.find("\r\nConnection: Upgrade\r\n"), answer.npos) << answer;
  EXPECT_NE(answer.find("\r\nUpgrade: websocket\r\n"), answer.npos) << answer;
  EXPECT_NE(answer.find("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), answer.npos)
      << answer;
  EXPECT_EQ(answer.find("Content-Length"), answer.npos) << answer;
}

TEST_F(WebSocketTest, RejectsOtherRequests) {
  serve();
  const std::string answer = talk(connect(), "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 426 ")) << answer;
  EXPECT_NE(answer.find("\r\nConnection: Upgrade\r\n"), answer.npos) << answer;
  EXPECT_NE(answer.find("\r\nUpgrade: websocket\r\n"), answer.npos) << answer;
  EXPECT_EQ(server_->counters().websockets.value(), 0U);
}

// RFC 9110 §7.8: Connection names Upgrade wherever it is sent.
TEST_F(WebSocketTest, ConnectionNamesUpgradeBesideItsOtherOptions) {
  routes_.get("/offer", [] {
    Response response = http::text("hi");
    response.add_header("Upgrade", "h2c");
    return response;
  });
  serve();
  const auto line_of = [this](const std::string& request) {
    const std::string head = talk(connect(), request);
    const std::size_t begin = head.find("\r\nConnection: ");
    if (begin == head.npos) return std::string("-");
    return head.substr(begin + 2, head.find("\r\n", begin + 2) - begin - 2);
  };
  EXPECT_EQ(line_of("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "Connection: close, Upgrade");
  EXPECT_EQ(line_of("GET /echo HTTP/1.0\r\nHost: a\r\n\r\n"), "Connection: close, Upgrade");
  EXPECT_EQ(line_of("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "Connection: keep-alive, Upgrade");
  EXPECT_EQ(line_of("GET /offer HTTP/1.1\r\nHost: a\r\n\r\n"), "Connection: Upgrade");
}

TEST_F(WebSocketTest, AllowNamesExactlyTheMethodsThatTheRouteKnows) {
  serve();
  const auto status_of = [this](std::string_view method) {
    std::string request(handshake);
    request.replace(0, 3, method);
    return talk(connect(), request).substr(9, 3);
  };
  const std::string options = talk(connect(), "OPTIONS /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(options.find("\r\nAllow: GET, HEAD, OPTIONS\r\n"), options.npos) << options;
  EXPECT_EQ(status_of("GET"), "101");
  EXPECT_EQ(status_of("HEAD"), "426") << "it opens no WebSocket";
  EXPECT_EQ(status_of("POST"), "405");
}

TEST_F(WebSocketTest, EchoesMessages) {
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, frame(text, "hello")), answer(text, "hello"));
  EXPECT_EQ(talk(peer, frame(binary, "\x01\x02")), answer(binary, "\x01\x02"));
  EXPECT_EQ(talk(peer, frame(text, "")), answer(text, ""));
  EXPECT_EQ(talk(peer, frame(text, "a") + frame(text, "b")), answer(text, "a") + answer(text, "b"));
  const std::string large(100'000, 'x');
  EXPECT_TRUE(talk_all(peer, frame(text, large)) == answer(text, large));
  EXPECT_EQ(talk(peer, frame(close, close_payload(1000))), answer(close, close_payload(1000)));
  pass(2s);
  EXPECT_TRUE(peer.ended());
  expect_at_rest();
}

TEST_F(WebSocketTest, TakesFramesInTheSegmentOfTheHandshake) {
  serve();
  MemoryPeer& peer = connect();
  const std::string answers = talk(peer, std::string(handshake) + frame(text, "early"));
  EXPECT_TRUE(answers.ends_with("\r\n\r\n" + answer(text, "early"))) << answers;
}

TEST_F(WebSocketTest, CollectsFragmentsAndAnswersPingsBetweenThem) {
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, frame(ws::text_frame, "one ")), "");
  EXPECT_EQ(talk(peer, frame(ping, "p")), answer(pong, "p"));
  EXPECT_EQ(talk(peer, frame(ws::continuation_frame, "two ")), "");
  EXPECT_EQ(talk(peer, frame(ws::fin | ws::continuation_frame, "three")),
            answer(text, "one two three"));
}

TEST_F(WebSocketTest, ClosesForViolations) {
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, ws::header(text, 1) + "x"), answer(close, close_payload(1002)));
  pass(2s);
  EXPECT_TRUE(peer.ended());
  MemoryPeer& other = open();
  EXPECT_EQ(talk(other, frame(text, "\xff")), answer(close, close_payload(1007)));
  pass(2s);
  expect_at_rest();
}

TEST_F(WebSocketTest, ClosesAtTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(talk(open(), frame(text, "\xce")), answer(close, close_payload(1007)));
  EXPECT_EQ(talk(open(), frame(text, "a\xff")), answer(close, close_payload(1007)));
  EXPECT_EQ(talk(open(), frame(ws::text_frame, "a\xff")), answer(close, close_payload(1007)));
}

TEST_F(WebSocketTest, AnswersEachPing) {
  EXPECT_EQ(talk(open(), frame(ping, "1") + frame(ping, "2") + frame(text, "3") + frame(ping, "4")),
            answer(pong, "1") + answer(pong, "2") + answer(text, "3") + answer(pong, "4"));
}

TEST_F(WebSocketTest, SendsWithTheSmallestOutput) {
  routes_.websocket("/compressed", echo, {.compression = WebSocketCompression{.bytes_min = 0}});
  Limits limits;
  limits.websocket.output_max = 0;
  serve(limits);
  EXPECT_EQ(talk(open(), frame(ping, "1") + frame(text, "2") + frame(close, close_payload(1000))),
            answer(pong, "1") + answer(text, "2") + answer(close, close_payload(1000)));
  std::string request(handshake);
  request.replace(4, 5, "/compressed");
  request.insert(request.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  MemoryPeer& peer = connect();
  talk(peer, request);
  const std::string echoed = talk_all(peer, frame(text, "Hello"));
  ASSERT_FALSE(echoed.empty());
  EXPECT_EQ(echoed.front(), '\xC1') << "a whole compressed message";
}

TEST_F(WebSocketTest, ClosesForAMessageBeyondTheLimit) {
  Limits limits;
  limits.websocket.message_bytes_max = 10;
  serve(limits);
  MemoryPeer& peer = open();
  EXPECT_EQ(talk(peer, frame(text, "0123456789")), answer(text, "0123456789"));
  EXPECT_EQ(talk(peer, frame(text, "0123456789x")), answer(close, close_payload(1009)));
}

TEST_F(WebSocketTest, PingsASilentPeerAndDropsADeadOne) {
  MemoryPeer& peer = open();
  pass(29s);
  EXPECT_EQ(peer.take(), "");
  pass(2s);
  EXPECT_EQ(peer.take(), answer(ping));
  EXPECT_EQ(talk(peer, frame(pong)), "");
  pass(29s);
  EXPECT_EQ(peer.take(), "");
  pass(2s);
  EXPECT_EQ(peer.take(), answer(ping));
  pass(22s);
  EXPECT_TRUE(peer.ended() || peer.was_reset());
  expect_at_rest();
}

TEST_F(WebSocketTest, AnIdleOneDrainsInTime) {
  MemoryPeer& silent = open();
  EXPECT_EQ(talk(silent, frame(text, "x")), answer(text, "x"));
  pass(5s);
  drain();
  pass(1s);
  EXPECT_FALSE(stopped());
  pass(5s);
  EXPECT_TRUE(stopped());
}

/// Reads for a second, and then sends each piece that has arrived or arrives.
Task<Result<>> read_late(WebSocket& socket) {
  auto reading = as_task(socket.read());
  const auto late = co_await timeout(1s, std::move(reading));
  EXPECT_EQ(late.error(), Errc::timed_out);
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage piece, co_await socket.read_piece());
    const std::string seen = "[" + std::string(piece.text()) + (piece.ends ? "]" : "");
    WEIR_CO_TRY(co_await socket.send(seen));
  }
}

TEST_F(WebSocketTest, KeepsThePiecesOfACancelledRead) {
  routes_.websocket("/late", read_late);
  MemoryPeer& peer = open("/late");
  EXPECT_EQ(talk(peer, frame(ws::text_frame, "one")), "");
  pass(1s);
  EXPECT_EQ(peer.take(), answer(text, "[one"));
  EXPECT_EQ(talk(peer, frame(ws::fin, "two")), answer(text, "[two]"));
  EXPECT_EQ(talk(peer, frame(text, "three")), answer(text, "[three]"));
}

/// Gives up a message that has to wait, and sends another one.
Task<Result<>> choose(WebSocket& socket) {
  const std::string large(1'000'000, 'x');
  ManualResetEvent now(true);
  const auto chosen = co_await select(socket.send(large), now.wait());
  EXPECT_EQ(chosen->index(), 1U);
  WEIR_CO_TRY(co_await socket.send_piece({.is_text = true, .ends = false, .bytes = {}}));
  const auto mixed = co_await socket.send("mixed");
  EXPECT_EQ(mixed.error(), Errc::conflict);
  WEIR_CO_TRY(co_await socket.send_piece({.is_text = true, .ends = true, .bytes = {}}));
  WEIR_CO_TRY(co_await socket.send("after"));
  co_return {};
}

TEST_F(WebSocketTest, SendsNothingOfAMessageThatWasGivenUp) {
  routes_.websocket("/choose", choose);
  serve();
  std::string request(handshake);
  request.replace(4, 5, "/choose");
  const std::string answers = talk(connect(), request);
  EXPECT_EQ(answers.substr(answers.find("\r\n\r\n") + 4), answer(ws::text_frame) + answer(ws::fin) +
                                                              answer(text, "after") +
                                                              answer(close, close_payload(1000)));
}

/// Neither reads nor sends.
Task<Result<>> wait_long(WebSocket&) {
  co_return co_await sleep(std::chrono::hours(1));
}

TEST_F(WebSocketTest, CancelsAHandlerThatDoesNotReadWhenItsPeerIsLost) {
  routes_.websocket("/wait", wait_long);
  MemoryPeer& peer = open("/wait");
  pass(5s);
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U);
  peer.reset();
  pass(2s);
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

// The end of one direction wakes the task that waits in the other.
TEST_F(WebSocketTest, EndOfThePeersStreamEndsAWaitingSend) {
  std::error_code error;
  routes_.websocket("/flood", [&error](WebSocket& socket) -> Task<Result<>> {
    const auto first = co_await socket.read();
    if (!first) co_return fail(first.error());
    const std::string message(64 * 1024, 'x');
    for (;;) {
      const Result<> sent = co_await socket.send(message);
      if (!sent) error = sent.error();
      if (!sent) co_return sent;
    }
  });
  MemoryPeer& peer = open("/flood");
  EXPECT_GT(peer.send(frame(text, "go")), 0U);
  settle();
  EXPECT_FALSE(error) << "the peer does not read";
  peer.finish();
  settle();
  EXPECT_TRUE(error);
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

TEST_F(WebSocketTest, CancelsAHandlerThatDoesNotReadSomeTimeAfterTheClose) {
  routes_.websocket("/wait", wait_long);
  MemoryPeer& peer = open("/wait");
  EXPECT_EQ(talk(peer, frame(ping, "p") + frame(close, close_payload(1000))),
            answer(pong, "p") + answer(close, close_payload(1000)));
  pass(4s);
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U) << "it may still save something";
  pass(3s);
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
}

/// Reads one message, and then does something else.
Task<Result<>> read_once(WebSocket& socket) {
  WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
  const auto waited = co_await sleep(std::chrono::hours(1));
  EXPECT_EQ(message.text(), "first") << "the bytes stay";
  co_return waited;
}

TEST_F(WebSocketTest, AnswersThePeerWhileTheHandlerDoesNotRead) {
  routes_.websocket("/once", read_once);
  routes_.websocket("/wait", wait_long);
  MemoryPeer& peer = open("/once");
  peer.send(frame(text, "first") + frame(ping, "p") + frame(close, close_payload(1000)));
  pass(1s);
  EXPECT_EQ(peer.take(), answer(pong, "p") + answer(close, close_payload(1000)));
  std::string request(handshake);
  request.replace(4, 5, "/wait");
  const std::string answers = talk(connect(), request + frame(ping, "p"));
  EXPECT_TRUE(answers.ends_with("\r\n\r\n" + answer(pong, "p"))) << answers;
  pass(6s);
  EXPECT_EQ(server_->counters().websockets_open.value(), 1U);
}

/// Closes the connection while another task reads. Returns the end of both.
Task<std::pair<std::error_code, std::error_code>> close_beside_a_reader(WebSocket& socket) {
  std::error_code reader;
  std::error_code closer;
  const auto read_all = [&](Scope&) -> Task<> {
    for (;;) {
      const auto message = co_await socket.read();
      if (message) std::ignore = co_await sleep(1s);
      if (!message) reader = message.error();
      if (!message) co_return;
    }
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(read_all(scope));
    std::ignore = co_await sleep(2s);
    const auto closed = co_await socket.close(WebSocketCloseCode::normal, "enough");
    if (!closed) closer = closed.error();
  };
  std::ignore = co_await with_scope(body);
  co_return std::pair(reader, closer);
}

TEST_F(WebSocketTest, ClosesWhileAnotherTaskReads) {
  std::vector<std::pair<std::error_code, std::error_code>> ends;
  routes_.websocket("/close", [&ends](WebSocket& socket) -> Task<> {
    ends.push_back(co_await close_beside_a_reader(socket));
  });
  MemoryPeer& waiting = open("/close");
  MemoryPeer& working = open("/close");
  MemoryPeer& silent = open("/close");
  pass(1500ms);
  EXPECT_EQ(talk(working, frame(text, "the reader works on it")), "");
  pass(600ms);
  for (MemoryPeer* const peer : {&waiting, &working, &silent}) {
    EXPECT_EQ(peer->take(), answer(close, close_payload(1000, "enough")));
  }
  talk(waiting, frame(ws::text_frame, "dropped") + frame(close, close_payload(1000)));
  talk(working, frame(text, "dropped") + frame(close, close_payload(1000)));
  pass(1s);
  EXPECT_EQ(ends.size(), 2U);
  pass(5s);
  ASSERT_EQ(ends.size(), 3U);
  for (const std::size_t polite : {0U, 1U}) {
    EXPECT_EQ(ends[polite].first, Errc::end_of_stream);
    EXPECT_FALSE(ends[polite].second);
  }
  EXPECT_EQ(ends[2].first, Errc::timed_out);
  EXPECT_EQ(ends[2].second, Errc::timed_out);
}

TEST_F(WebSocketTest, ClosesWhenTheRemovalOfItsRouteBegins) {
  const RouteId id = routes_.websocket("/wait", wait_long);
  routes_.get("/remove", [this, id]() -> Task<Response> {
    const auto removed = co_await LiveRoutes(routes_).remove(id);
    co_return Response(removed ? Status::no_content : Status::conflict);
  });
  MemoryPeer& peer = open("/wait");
  MemoryPeer& remover = connect();
  EXPECT_EQ(talk(remover, "GET /remove HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  EXPECT_EQ(peer.take(), answer(close, close_payload(1012)));
  pass(6s);  // the handler is cancelled
  EXPECT_TRUE(remover.take().starts_with("HTTP/1.1 204 "));
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
}

// Values of middleware.

struct User {
  std::string name;
};
struct Ticket {
  std::unique_ptr<int> number;
};

Task<Response> set_values(Request& request, Next next) {
  request.set(User{std::string(request.header("Host").value_or("")) + std::string(100, '!')});
  request.set(Ticket{std::make_unique<int>(7)});
  co_return co_await next(request);
}

TEST_F(WebSocketTest, KeepsACopyOfAValueOfItsRequest) {
  const auto greet = [](WebSocket& socket, const User& user) -> Task<Result<>> {
    WEIR_CO_TRY(co_await socket.read());
    co_return co_await socket.send(user.name);
  };
  routes_.group<User>("/in", set_values).websocket("/greet", greet);
  MemoryPeer& peer = open("/in/greet");
  EXPECT_EQ(talk(peer, frame(text, "hello")),
            answer(text, "a" + std::string(100, '!')) + answer(close, close_payload(1000)));
}

TEST_F(WebSocketTest, RejectsAValueOfItsRequestThatCannotBeCopied) {
  const auto take = [](WebSocket& socket, const Ticket& ticket) -> Task<Result<>> {
    co_return co_await socket.send(std::to_string(*ticket.number));
  };
  routes_.group<Ticket>("/in", set_values).websocket("/take", take);
  serve();
  std::string request(handshake);
  request.replace(4, 5, "/in/take");
  EXPECT_TRUE(talk(connect(), request).starts_with("HTTP/1.1 500 "));
  EXPECT_EQ(server_->counters().handler_failures.value(), 1U);
}

TEST_F(WebSocketTest, DrainsWithACloseAndADeadline) {
  MemoryPeer& polite = open();
  MemoryPeer& silent = open();
  drain();
  settle();
  EXPECT_EQ(polite.take(), answer(close, close_payload(1001)));
  EXPECT_EQ(silent.take(), answer(close, close_payload(1001)));
  talk(polite, frame(close, close_payload(1001)));
  pass(1s);
  EXPECT_TRUE(polite.ended());
  EXPECT_FALSE(stopped());
  pass(5s);
  EXPECT_TRUE(stopped());
}

}  // namespace
}  // namespace weir::http::served_websocket_test
