// Tests of the WebSockets of a client over HTTP/2 against servers that follow scripts: settings,
// refusals, windows, and the ends of streams and connections at each step.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::h2_client_websocket_peer_test {
namespace {

using namespace std::chrono_literals;
using frames::rst_stream;

/// Returns SETTINGS that offer WebSockets, with more entries.
std::string offer(std::string_view more = {}) {
  return frames::settings(frames::setting(SettingId::enable_connect_protocol, 1) +
                          std::string(more)) +
         frames::frame(FrameType::settings, FrameFlag::ack, 0);
}
/// Returns the response that accepts the WebSocket of a stream.
std::string opening(std::uint32_t stream) {
  return frames::answer(stream, "200", FrameFlag::end_headers);
}
std::string message(std::uint32_t stream, std::string_view text) {
  return frames::data(stream, ws::frame_to(WsRole::client, ws::fin | ws::text_frame, text));
}
std::string close_frame(std::uint32_t stream, std::uint16_t code, std::uint8_t flags = 0) {
  return frames::data(
      stream, ws::frame_to(WsRole::client, ws::fin | ws::close_frame, ws::number(code, 2)), flags);
}

/// The end of one WebSocket.
struct Outcome {
  std::error_code read;    ///< of the read that ended it
  std::error_code result;  ///< of Client::websocket()
  std::string text;        ///< the messages
  WebSocketCloseCode code{};
  bool opened = false;
};

class H2ClientWebSocketPeerTest : public H2ServerFixture {
 protected:
  H2ClientWebSocketPeerTest() { greetings_.assign(8, offer()); }

  static constexpr std::string_view url = "ws://127.0.0.1:81/chat?room=1";

  /// Opens a WebSocket and reads until its end.
  static Task<Outcome> follow(Client& client, ClientWebSocketOptions options = {}) {
    Outcome outcome;
    const auto read = [&outcome](WebSocket& socket) -> Task<Result<>> {
      outcome.opened = true;
      for (;;) {
        const auto next = co_await socket.read();
        outcome.code = socket.close_code();
        if (!next) {
          outcome.read = next.error();
          co_return fail(next.error());
        }
        outcome.text += next->text();
      }
    };
    const auto ended = co_await client.websocket(std::string(url), read, std::move(options));
    if (!ended) outcome.result = ended.error();
    co_return outcome;
  }
  static Task<> read_for(H2Peer& peer, Duration length) {
    auto reading = peer.end();
    static_cast<void>(co_await timeout(length, std::move(reading)));
  }
  /// Runs one WebSocket, whose server follows these scripts.
  Outcome run(std::vector<Script> scripts, ClientLimits limits = {},
              const ClientWebSocketOptions& options = {}) {
    Outcome outcome;
    with_scripts(std::move(scripts), http2(limits), [&](Client& client) -> Task<> {
      outcome = co_await follow(client, options);
      static_cast<void>(co_await sleep(10ms));  // the server reads the rest
    });
    return outcome;
  }
  /// Answers the first request with these bytes, and waits until the client leaves.
  static Script answer_with(std::string bytes) {
    return [bytes](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("head 1")) co_return;
      co_await peer.send(bytes);
      co_await peer.end();
    };
  }
  /// Accepts a WebSocket and closes it.
  static Task<> serve_one(H2Peer& peer) {
    const bool asked = co_await peer.receive("head 1");
    if (!asked) co_return;
    co_await peer.send(opening(1) + message(1, "hello") +
                       close_frame(1, 1000, FrameFlag::end_stream));
    co_await peer.end();
  }
};

// The handshake.

TEST_F(H2ClientWebSocketPeerTest, SendsAnExtendedConnect) {
  std::string lines;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    co_await serve_one(peer);
    lines = peer.lines();
  };
  ClientWebSocketOptions options;
  options.subprotocols = {"a", "b"};
  EXPECT_TRUE(options.headers.add("Origin", "https://app.test"));
  const Outcome outcome = run({serve}, {}, options);
  EXPECT_EQ(outcome.text, "hello");
  EXPECT_EQ(outcome.result, std::error_code());
  EXPECT_NE(lines.find("head 1 :method=CONNECT :protocol=websocket :scheme=http "
                       ":path=/chat?room=1 :authority=127.0.0.1:81 sec-websocket-version=13 "
                       "sec-websocket-protocol=a, b origin=https://app.test\n"),
            std::string::npos)
      << lines;
}

TEST_F(H2ClientWebSocketPeerTest, WaitsForTheSettings) {
  greetings_ = {""};
  const auto serve = [](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("settings_end")) << "the client begins";
    static_cast<void>(co_await sleep(10s));  // longer than ClientLimits::idle_timeout
    EXPECT_EQ(peer.lines().find("head"), std::string::npos);
    co_await peer.send(offer());
    co_await serve_one(peer);
  };
  const Outcome outcome = run({serve});
  EXPECT_EQ(outcome.text, "hello");
  EXPECT_EQ(outcome.code, WebSocketCloseCode::normal);
  EXPECT_EQ(accepted_, 1U);
}

TEST_F(H2ClientWebSocketPeerTest, DelaysNoRequestUntilTheSettingsArrive) {
  greetings_ = {""};
  const auto serve = [](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("head 1 :method=GET"));
    co_await peer.send(offer() + frames::answer_text(1, "page"));
    EXPECT_TRUE(co_await peer.receive("head 3 :method=CONNECT"));
    co_await peer.send(opening(3) + message(3, "hello") +
                       close_frame(3, 1000, FrameFlag::end_stream));
    co_await peer.end();
  };
  with_scripts({serve}, [](Client& client) -> Task<> {
    Outcome outcome;
    const auto open = [&]() -> Task<> { outcome = co_await follow(client); };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(open());
      static_cast<void>(co_await sleep(1s));
      EXPECT_EQ(co_await ask(client), "page");
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
    EXPECT_EQ(outcome.text, "hello");
  });
  EXPECT_EQ(accepted_, 1U);
}

TEST_F(H2ClientWebSocketPeerTest, GivesUpIfNoSettingsArrive) {
  greetings_ = {""};
  const auto serve = [](H2Peer& peer) -> Task<> { co_await peer.end(); };
  ClientLimits limits;
  limits.head_timeout = 7s;
  const Instant start = platform_.now();
  EXPECT_EQ(run({serve}, limits).result, make_error_code(ClientError::head_timed_out));
  EXPECT_GE(platform_.now() - start, Duration(7s));
}

TEST_F(H2ClientWebSocketPeerTest, FailsIfTheConnectionIsLostBeforeTheSettings) {
  greetings_ = {"", frames::frame(FrameType::data, 0, 1)};
  const auto leave = [](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("settings_end"));
    peer.close();
  };
  EXPECT_EQ(run({leave}).result, make_error_code(ClientError::connection_lost));
  greetings_ = {frames::frame(FrameType::data, 0, 1)};
  const auto end = [](H2Peer& peer) -> Task<> { co_await peer.end(); };
  EXPECT_EQ(run({end}).result, make_error_code(ClientError::bad_response));
}

TEST_F(H2ClientWebSocketPeerTest, UsesHttp1IfTheServerDoesNotOfferIt) {
  greetings_ = {frames::settings(), "", ""};
  const auto http2 = [](H2Peer& peer) -> Task<> {
    co_await peer.end();
    EXPECT_EQ(peer.lines().find("head"), std::string::npos);
  };
  const auto http1 = [](H2Peer& peer) -> Task<> {
    std::string request;
    while (!request.ends_with("\r\n\r\n")) {
      const auto more = co_await peer.stream().read();
      if (!more) co_return;
      request += more->text();
    }
    EXPECT_TRUE(request.starts_with("GET /chat?room=1 HTTP/1.1\r\n")) << request;
    constexpr std::string_view name = "Sec-WebSocket-Key: ";
    const WsAccept accepted =
        websocket_accept(std::string_view(request).substr(request.find(name) + name.size(), 24));
    co_await peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Accept: " +
        std::string(accepted.data(), accepted.size()) + "\r\n\r\n" +
        ws::frame_to(WsRole::client, ws::fin | ws::text_frame, "old") +
        ws::frame_to(WsRole::client, ws::fin | ws::close_frame));
    static_cast<void>(co_await peer.stream().read());
  };
  with_scripts({http2, http1, http1}, [](Client& client) -> Task<> {
    for (int count = 0; count < 2; ++count) {
      const Outcome outcome = co_await follow(client);
      EXPECT_EQ(outcome.text, "old");
      EXPECT_EQ(client.connection_count(), 1U) << "requests may use it";
    }
  });
  EXPECT_EQ(accepted_, 3U);
}

TEST_F(H2ClientWebSocketPeerTest, RejectsWrongAnswers) {
  const auto with = [](std::string_view name, std::string_view value) {
    return frames::headers(1, frames::block({{":status", "200"}, {name, value}}),
                           FrameFlag::end_headers);
  };
  for (const std::string& bad :
       {with("sec-websocket-protocol", "soap"),
        with("sec-websocket-extensions", "permessage-deflate"),
        frames::headers(1, frames::block({{"a", "b"}}), FrameFlag::end_headers),
        frames::data(1, "early")}) {
    const Outcome outcome = run({answer_with(bad)});
    EXPECT_EQ(outcome.result, make_error_code(ClientError::bad_response));
    EXPECT_FALSE(outcome.opened);
  }
  // A length has no meaning in the answer to a CONNECT (RFC 9110 §9.3.6).
  const Outcome outcome =
      run({answer_with(with("content-length", "3") + message(1, "hello") + close_frame(1, 1000))});
  EXPECT_EQ(outcome.text, "hello");
  EXPECT_EQ(outcome.result, std::error_code());
}

TEST_F(H2ClientWebSocketPeerTest, EndsTheStreamOfARefusal) {
  std::string lines;
  const auto forbid = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer(1, "403", FrameFlag::end_headers) +
                       frames::data(1, "no", FrameFlag::end_stream));
    co_await peer.end();
    lines = peer.lines();
  };
  const Outcome outcome = run({forbid});
  EXPECT_EQ(outcome.result, error_of(Status::forbidden));
  EXPECT_NE(lines.find("data 1  end\n"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("reset"), std::string::npos) << lines;
}

TEST_F(H2ClientWebSocketPeerTest, FailsForAHeadAboveTheLimitOfTheServer) {
  greetings_ = {offer(frames::setting(SettingId::max_header_list_size, 100))};
  const auto serve = [](H2Peer& peer) -> Task<> { co_await peer.end(); };
  EXPECT_EQ(run({serve}).result, Errc::limit_reached);
}

TEST_F(H2ClientWebSocketPeerTest, TakesTheTimeoutOfTheHandshakeFromTheLimits) {
  const auto serve = [](H2Peer& peer) -> Task<> {
    co_await peer.receive("reset 1 8");
    co_await peer.end();
  };
  ClientLimits limits;
  limits.head_timeout = 2s;
  EXPECT_EQ(run({serve}, limits).result, make_error_code(ClientError::head_timed_out));
}

// Repetitions.

TEST_F(H2ClientWebSocketPeerTest, AsksAgainIfTheServerHasNotProcessedIt) {
  const auto refuse = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(rst_stream(1, H2Error::refused_stream));
    if (!co_await peer.receive("head 3")) co_return;
    co_await peer.send(frames::goaway(1));
    co_await peer.end();
  };
  const Outcome outcome = run({refuse, serve_one});
  EXPECT_EQ(outcome.text, "hello");
  EXPECT_EQ(accepted_, 2U);
}

TEST_F(H2ClientWebSocketPeerTest, AsksAgainOnceIfAUsedConnectionIsLost) {
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "page"));
    if (!co_await peer.receive("head 3")) co_return;
    peer.close();
  };
  with_scripts({lose, serve_one}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "page");
    const Outcome outcome = co_await follow(client);
    EXPECT_EQ(outcome.text, "hello");
  });
  EXPECT_EQ(accepted_, 2U);
}

TEST_F(H2ClientWebSocketPeerTest, DoesNotAskForever) {
  const auto refuse = [](H2Peer& peer) -> Task<> {
    for (std::uint32_t id = 1; co_await peer.receive("head " + std::to_string(id)); id += 2) {
      EXPECT_LE(id, 7U);
      co_await peer.send(rst_stream(id, H2Error::refused_stream));
    }
  };
  EXPECT_EQ(run({refuse}).result, make_error_code(ClientError::not_processed));
}

// The settings and the windows.

TEST_F(H2ClientWebSocketPeerTest, CountsToTheStreamsThatTheServerAllows) {
  greetings_ = {offer(frames::setting(SettingId::max_concurrent_streams, 1))};
  const auto serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1) + message(1, "hello"));
    co_await read_for(peer, 1s);
    EXPECT_EQ(peer.lines().find("head 3"), std::string::npos);
    co_await peer.send(close_frame(1, 1000, FrameFlag::end_stream));
    EXPECT_TRUE(co_await peer.receive("head 3"));
    co_await peer.send(frames::answer_text(3, "later"));
    co_await peer.end();
  };
  ClientLimits limits;
  limits.connections_per_origin_max = 1;
  with_scripts({serve}, http2(limits), [](Client& client) -> Task<> {
    Outcome outcome;
    const auto open = [&]() -> Task<> { outcome = co_await follow(client); };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(open());
      static_cast<void>(co_await sleep(100ms));
      EXPECT_EQ(co_await ask(client), "later");
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
    EXPECT_EQ(outcome.text, "hello");
  });
}

TEST_F(H2ClientWebSocketPeerTest, SendsNoMoreThanTheWindowOfTheServer) {
  greetings_ = {offer(frames::setting(SettingId::initial_window_size, 100))};
  const auto sent = [](const H2Peer& peer) {
    std::size_t size = 0;
    const std::string& lines = peer.lines();
    for (std::size_t at = lines.find("data 1 "); at != std::string::npos;
         at = lines.find("data 1 ", at + 1)) {
      ++size;
    }
    return size;
  };
  bool was_sent = false;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1));
    EXPECT_TRUE(co_await peer.receive("data 1 "));
    co_await read_for(peer, 1s);
    EXPECT_EQ(sent(peer), 1U) << "100 bytes";
    EXPECT_FALSE(was_sent);
    co_await peer.send(frames::window_update(1, 100'000'000) +
                       frames::window_update(0, 100'000'000));
    co_await read_for(peer, 1s);
    EXPECT_TRUE(was_sent);
    co_await peer.send(close_frame(1, 1000, FrameFlag::end_stream));
    co_await peer.end();
    EXPECT_GT(sent(peer), 1U);
  };
  with_scripts({serve}, [&](Client& client) -> Task<> {
    const auto talk = [&](WebSocket& socket) -> Task<Result<>> {
      WEIR_CO_TRY(co_await socket.send(std::string(200'000, 'x')));
      was_sent = true;
      static_cast<void>(co_await socket.read());
      co_return {};
    };
    EXPECT_TRUE(co_await client.websocket(std::string(url), talk));
  });
}

TEST_F(H2ClientWebSocketPeerTest, OpensItsWindowWhenTheFunctionReads) {
  bool reads = false;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1));
    for (int count = 0; count < 5; ++count) {
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(message(1, std::string(10'000, 'x')));
    }
    co_await read_for(peer, 1s);
    EXPECT_EQ(peer.lines().find("window_update 1 "), std::string::npos) << "nothing is read";
    reads = true;
    EXPECT_TRUE(co_await peer.receive("window_update 1 "));
    co_await peer.send(close_frame(1, 1000, FrameFlag::end_stream));
    co_await peer.end();
  };
  std::string seen;
  with_scripts({serve}, [&](Client& client) -> Task<> {
    const auto talk = [&](WebSocket& socket) -> Task<Result<>> {
      while (!reads) static_cast<void>(co_await sleep(100ms));
      for (;;) {
        WEIR_CO_TRY(const auto next, co_await socket.read());
        seen += next.text();
      }
    };
    EXPECT_TRUE(co_await client.websocket(std::string(url), talk));
  });
  EXPECT_EQ(seen.size(), 50'000U);
}

// The ends.

TEST_F(H2ClientWebSocketPeerTest, ClosesWithItsOwnCode) {
  std::string lines;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1));
    EXPECT_TRUE(co_await peer.receive("data 1 \x88\x82"));
    co_await peer.send(close_frame(1, 4001));
    EXPECT_TRUE(co_await peer.receive("data 1  end"));
    co_await peer.send(frames::data(1, "", FrameFlag::end_stream));
    co_await peer.end();
    lines = peer.lines();
  };
  with_scripts({serve}, [](Client& client) -> Task<> {
    WebSocketCloseCode code{};
    const auto close = [&](WebSocket& socket) -> Task<Result<>> {
      const auto closed = co_await socket.close(static_cast<WebSocketCloseCode>(4001));
      code = socket.close_code();
      co_return closed;
    };
    EXPECT_TRUE(co_await client.websocket(std::string(url), close));
    EXPECT_EQ(static_cast<int>(code), 4001);
    EXPECT_EQ(client.idle_count(), 1U);
  });
  EXPECT_EQ(lines.find("reset"), std::string::npos) << lines;
}

TEST_F(H2ClientWebSocketPeerTest, AnswersTheCloseOfTheServer) {
  std::string lines;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1) + close_frame(1, 4002));
    EXPECT_TRUE(co_await peer.receive("data 1 \x88\x82"));
    EXPECT_TRUE(co_await peer.receive("data 1  end"));
    co_await peer.send(frames::data(1, "", FrameFlag::end_stream));
    co_await peer.end();
    lines = peer.lines();
  };
  const Outcome outcome = run({serve});
  EXPECT_EQ(outcome.read, Errc::end_of_stream);
  EXPECT_EQ(outcome.result, std::error_code());
  EXPECT_EQ(static_cast<int>(outcome.code), 4002);
  EXPECT_EQ(lines.find("reset"), std::string::npos) << lines;
}

TEST_F(H2ClientWebSocketPeerTest, ResetsAStreamThatTheServerDoesNotEnd) {
  const auto serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1) + close_frame(1, 1000));
    EXPECT_TRUE(co_await peer.receive("data 1  end"));
    EXPECT_TRUE(co_await peer.receive("reset 1 8")) << "CANCEL (RFC 8441 §5)";
    co_await peer.end();
  };
  const Instant start = platform_.now();
  EXPECT_EQ(run({serve}).result, std::error_code());
  EXPECT_LT(platform_.now() - start, Duration(10s));
}

TEST_F(H2ClientWebSocketPeerTest, ResetsTheStreamOfAFailedConnection) {
  const auto serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1) + frames::data(1, "\xFF\xFF"));  // no frame
    EXPECT_TRUE(co_await peer.receive("data 1 \x88")) << "a Close with 1002";
    co_await peer.end();
  };
  EXPECT_EQ(run({serve}).read, Errc::bad_input);
}

TEST_F(H2ClientWebSocketPeerTest, ReportsTheEndOfTheStreamAndItsReset) {
  const auto ended =
      run({answer_with(opening(1) + message(1, "a") + frames::data(1, "", FrameFlag::end_stream))});
  EXPECT_EQ(ended.text, "a");
  EXPECT_EQ(ended.read, Errc::closed);
  EXPECT_EQ(ended.result, Errc::closed);
  EXPECT_EQ(ended.code, WebSocketCloseCode::abnormal);
  for (const H2Error error :
       {H2Error::cancel, H2Error::no_error, H2Error::refused_stream, H2Error::internal_error}) {
    const auto reset = run({answer_with(opening(1) + message(1, "a") + rst_stream(1, error))});
    EXPECT_EQ(reset.text, "a");
    EXPECT_EQ(reset.read, system_error(ECONNRESET));
    EXPECT_EQ(reset.result, system_error(ECONNRESET));
  }
  const auto early = run({answer_with(rst_stream(1))});
  EXPECT_EQ(early.result, make_error_code(ClientError::connection_lost));
  const auto at_once = run({answer_with(frames::answer(1, "200"))});
  EXPECT_TRUE(at_once.opened);
  EXPECT_EQ(at_once.read, Errc::closed);
  const auto trailers =
      run({answer_with(opening(1) + frames::headers(1, frames::block({{"a", "b"}})))});
  EXPECT_EQ(trailers.read, Errc::closed);
  const auto closed = run({answer_with(opening(1) + close_frame(1, 1000, FrameFlag::end_stream) +
                                       rst_stream(1, H2Error::no_error))});
  EXPECT_EQ(closed.result, std::error_code());
}

TEST_F(H2ClientWebSocketPeerTest, NoticesALateEndWhileItReads) {
  const std::string trailers = frames::headers(1, frames::block({{"a", "b"}}));
  for (const std::string& end :
       {trailers, frames::data(1, "", FrameFlag::end_stream), rst_stream(1)}) {
    const auto serve = [&end](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("head 1")) co_return;
      co_await peer.send(opening(1));
      static_cast<void>(co_await sleep(1s));
      co_await peer.send(end);
      co_await peer.end();
    };
    const Instant start = platform_.now();
    const Outcome outcome = run({serve});
    EXPECT_TRUE(outcome.read);
    EXPECT_LT(platform_.now() - start, Duration(10s));
  }
}

TEST_F(H2ClientWebSocketPeerTest, FailsASendOnAStreamThatIsReset) {
  greetings_ = {offer(frames::setting(SettingId::initial_window_size, 100))};
  const auto serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1));
    if (!co_await peer.receive("data 1 ")) co_return;
    co_await peer.send(rst_stream(1));
    co_await peer.end();
  };
  with_scripts({serve}, [](Client& client) -> Task<> {
    const auto talk = [](WebSocket& socket) -> Task<Result<>> {
      const std::string large(200'000, 'x');
      const auto sent = co_await socket.send(large);
      EXPECT_FALSE(socket.is_open());
      const auto later = co_await socket.send("more");
      EXPECT_FALSE(later);
      co_return sent;
    };
    const auto ended = co_await client.websocket(std::string(url), talk);
    EXPECT_EQ(ended.error(), Errc::cancelled) << "a function that does not read is cancelled";
    EXPECT_EQ(client.idle_count(), 1U) << "the connection stays";
  });
}

TEST_F(H2ClientWebSocketPeerTest, OutlivesAGoaway) {
  const auto serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(opening(1) + frames::goaway(1) + message(1, "before "));
    static_cast<void>(co_await sleep(1s));
    co_await peer.send(message(1, "after"));
    static_cast<void>(co_await sleep(1s));
    co_await peer.send(close_frame(1, 1000, FrameFlag::end_stream));
    co_await peer.end();
  };
  with_scripts({serve, serve_one}, [](Client& client) -> Task<> {
    Outcome old;
    const auto open = [&]() -> Task<> { old = co_await follow(client); };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(open());
      static_cast<void>(co_await sleep(500ms));
      const Outcome fresh = co_await follow(client);
      EXPECT_EQ(fresh.text, "hello") << "over another connection";
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
    EXPECT_EQ(old.text, "before after");
    EXPECT_EQ(old.result, std::error_code());
    static_cast<void>(co_await sleep(1ms));
    EXPECT_EQ(client.connection_count(), 1U) << "the old one is closed";
  });
  EXPECT_EQ(accepted_, 2U);
}

/// Ends the connection, or resets it, behind each byte of what the server sends.
TEST_F(H2ClientWebSocketPeerTest, EndsWithItsConnectionAtEachByte) {
  const std::string all =
      offer() + opening(1) + message(1, "hello") + close_frame(1, 1000, FrameFlag::end_stream);
  const std::size_t settings = offer().size();
  for (const bool resets : {false, true}) {
    for (std::size_t size = 0; size <= all.size(); ++size) {
      greetings_ = {all.substr(0, std::min(size, settings))};
      const auto serve = [&](H2Peer& peer) -> Task<> {
        if (size >= settings) {
          if (!co_await peer.receive("head 1")) co_return;
          co_await peer.send(all.substr(settings, size - settings));
        }
        static_cast<void>(co_await sleep(100ms));
        if (!resets) co_return;
        for (int each = 0; each < 1000; ++each) platform_.reset_connection(each);
      };
      const Outcome outcome = run({serve});
      const bool whole = size == all.size();
      EXPECT_EQ(outcome.result == std::error_code(), whole) << size;
      const bool accepted = size >= settings + opening(1).size();
      EXPECT_EQ(outcome.opened, accepted) << size;
      if (!accepted) {
        EXPECT_EQ(outcome.result, make_error_code(ClientError::connection_lost)) << size;
      } else if (!whole) {
        EXPECT_EQ(outcome.read, system_error(ECONNRESET)) << size;
      }
    }
  }
}

/// Resets the stream behind each byte of the messages.
TEST_F(H2ClientWebSocketPeerTest, EndsWithItsStreamAtEachByte) {
  const std::string frames_of_socket =
      ws::frame_to(WsRole::client, ws::fin | ws::text_frame, "hello") +
      ws::frame_to(WsRole::client, ws::fin | ws::close_frame, ws::number(1000, 2));
  for (std::size_t size = 0; size <= frames_of_socket.size(); ++size) {
    const std::string bytes = frames_of_socket.substr(0, size);
    const Outcome outcome = run({answer_with(opening(1) + frames::data(1, bytes) + rst_stream(1))});
    const bool whole = size == frames_of_socket.size();
    EXPECT_EQ(outcome.result, whole ? std::error_code() : system_error(ECONNRESET)) << size;
    EXPECT_EQ(outcome.text, size >= 7 ? "hello" : "") << size;
  }
}

/// Cancels the WebSocket after each millisecond of its life.
TEST_F(H2ClientWebSocketPeerTest, ResetsItsStreamIfItIsCancelled) {
  greetings_ = {""};
  std::size_t resets = 0;
  for (int milliseconds = 0; milliseconds < 60; milliseconds += 3) {
    const auto serve = [&](H2Peer& peer) -> Task<> {
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(offer());
      if (!co_await peer.receive("head 1")) co_return;
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(opening(1));
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(message(1, "hello"));
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(close_frame(1, 1000));
      static_cast<void>(co_await sleep(10ms));
      co_await peer.send(frames::data(1, "", FrameFlag::end_stream));
      co_await peer.end();
      if (peer.lines().find("reset 1 8") != std::string::npos) ++resets;
    };
    with_scripts({serve}, [&](Client& client) -> Task<> {
      const auto read = [](WebSocket& socket) -> Task<Result<>> {
        WEIR_CO_TRY(co_await socket.read());
        WEIR_CO_TRY(co_await socket.read());
        co_return {};
      };
      auto talking = client.websocket(std::string(url), read);
      const auto ended =
          co_await timeout(std::chrono::milliseconds(milliseconds), std::move(talking));
      EXPECT_EQ(ended.has_value(), milliseconds > 40) << milliseconds;
    });
  }
  EXPECT_GE(resets, 8U);
}

}  // namespace
}  // namespace weir::http::h2_client_websocket_peer_test
