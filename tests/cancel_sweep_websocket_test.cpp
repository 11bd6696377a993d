// Cancels waits for a WebSocket at any time on every real backend; see tests/cancel_sweep.hpp.
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/topic.hpp"

namespace weir::tests::cancel_sweep_websocket_test {
namespace {

using http::WebSocketCloseCode;
using http::WebSocketMessage;
using http::WsConnection;
using http::WsRole;

constexpr http::WebSocketLimits limits;

/// One end of a connection.
struct End {
  End(tcp::Stream stream, WsRole role)
      : connection(AnyStream(std::move(stream)), role, limits, {}, {}, nullptr) {}
  WsConnection connection;
};

/// Sends three messages, and reads until the other end closes.
Task<> answer(End& end) {
  std::ignore = co_await sleep(short_delay);
  for (const std::string_view text : {"one", "two", "three"}) {
    const auto sent = co_await end.connection.send(text);
    if (!sent) break;
  }
  for (;;) {
    const auto message = co_await end.connection.read();
    if (!message) break;
  }
  co_await end.connection.finish(WebSocketCloseCode::normal);
}

/// Runs `use` of the server's end, which is cancelled. Both ends then finish.
template <class Use>
Task<> with_both_ends(CancelInjector& injector, SweepEnvironment& env, Use use) {
  {
    Pair pair = co_await connect_pair();
    std::optional<End> near(std::in_place, std::move(pair.near), WsRole::server);
    End far(std::move(pair.far), WsRole::client);
    env.spawn(answer(far));
    auto using_it = use(near->connection);
    std::ignore = succeeded(co_await injector.run_with_cancel(std::move(using_it)));
    co_await near->connection.finish(WebSocketCloseCode::normal);
    near.reset();  // it closes the stream
    co_await env.wait_until_idle();
  }
}

Task<Result<>> read_three(WsConnection& connection) {
  for (const std::string_view text : {"one", "two", "three"}) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await connection.read());
    EXPECT_EQ(message.text(), text);
  }
  co_return {};
}
Task<> reading(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, read_three);
}

Task<Result<>> read_pieces(WsConnection& connection) {
  for (int messages = 0; messages < 3;) {
    WEIR_CO_TRY(const WebSocketMessage piece, co_await connection.read_piece());
    if (piece.ends) ++messages;
  }
  co_return {};
}
Task<> reading_pieces(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, read_pieces);
}

/// Sends more than the buffers of both ends hold.
Task<Result<>> send_much(WsConnection& connection) {
  const std::string large(300'000, 'x');
  for (int count = 0; count < 3; ++count) {
    const auto sent = co_await connection.send(large);
    // A message that was sent in part closes the connection.
    if (!sent && sent.error() == Errc::closed) break;
    if (!sent) co_return sent;
  }
  co_return {};
}
Task<> sending(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, send_much);
}

Task<Result<>> send_pieces(WsConnection& connection) {
  WEIR_CO_TRY(co_await connection.send_piece({.is_text = true, .ends = false, .bytes = {}}));
  co_return co_await connection.send_piece({.is_text = true, .ends = true, .bytes = {}});
}
Task<> sending_pieces(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, send_pieces);
}

Task<Result<>> close_it(WsConnection& connection) {
  return connection.close(WebSocketCloseCode::going_away, "bye");
}
Task<> closing(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, close_it);
}

Task<Result<>> finish_it(WsConnection& connection) {
  co_await connection.finish(WebSocketCloseCode::normal);
  co_return {};
}
Task<> finishing(CancelInjector& injector, SweepEnvironment& env) {
  return with_both_ends(injector, env, finish_it);
}

Task<> publishing(CancelInjector& injector, SweepEnvironment& env) {
  http::Topic<http::SlowSubscriber::wait> topic({.capacity = 1});
  const auto publish = [&topic](WsConnection& connection) -> Task<Result<>> {
    const auto subscription = topic.subscribe(connection);
    for (const std::string_view text : {"a", "b", "c"}) WEIR_CO_TRY(co_await topic.publish(text));
    co_return {};
  };
  co_await with_both_ends(injector, env, publish);
}

constexpr std::array of_websocket = {
    SweepCase{"http::WebSocket::read", reading},
    SweepCase{"http::WebSocket::read_piece", reading_pieces},
    SweepCase{"http::WebSocket::send", sending},
    SweepCase{"http::WebSocket::send_piece", sending_pieces},
    SweepCase{"http::WebSocket::close", closing},
    SweepCase{"http::Topic::publish", publishing},
    SweepCase{"http::WsConnection::finish", finishing},
};

class CancelSweepOfWebSocket : public CancelSweep {};

TEST_P(CancelSweepOfWebSocket, Waits) {
  sweep_all(of_websocket);
}
TEST(CancelSweepInTheWorld, WaitsForWebSockets) {
  sweep_all_in_world(of_websocket);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfWebSocket, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_websocket_test
