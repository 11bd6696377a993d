// Tests of the WebSockets of a client: against Weir's server, and against scripts.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/client_fixture.hpp"

namespace weir::http::client_websocket_test {
namespace {

using namespace std::chrono_literals;

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

class ClientWebSocketTest : public ClientFixture {
 protected:
  ClientWebSocketTest() {
    routes_.websocket("/echo", echo, {.subprotocols = {"v2"}, .origins = {"https://app.test"}});
    routes_.get("/page", [] { return text("hello"); });
  }
  /// Runs `body` beside Weir's own server.
  void with_weir(const Body& body) {
    serve();
    Client client;
    const auto talk = [&](Scope& scope) -> Task<> {
      co_await body(client);
      scope.cancel();
    };
    static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
  }
  static constexpr std::string_view url = "ws://127.0.0.1:80/echo";
};

TEST_F(ClientWebSocketTest, TalksToAServer) {
  std::string seen;
  const auto talk = [&seen](WebSocket& socket) -> Task<Result<>> {
    EXPECT_EQ(socket.subprotocol(), "v2");
    const std::string large(200'000, 'x');
    for (const std::string_view text : {std::string_view("hello"), std::string_view(large)}) {
      WEIR_CO_TRY(co_await socket.send(text));
      WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
      EXPECT_TRUE(message.is_text);
      EXPECT_EQ(message.text().size(), text.size());
      seen += message.text().substr(0, 5);
    }
    co_return {};
  };
  with_weir([&talk](Client& client) -> Task<> {
    ClientWebSocketOptions options;
    options.subprotocols = {"v1", "v2"};
    const auto ended = co_await client.websocket(std::string(url), talk, std::move(options));
    EXPECT_TRUE(ended) << ended.error().message();
  });
  EXPECT_EQ(seen, "helloxxxxx");
  EXPECT_EQ(server_->counters().websockets.value(), 1U);
  EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
}

TEST_F(ClientWebSocketTest, ReturnsTheResultOfItsFunction) {
  with_weir([](Client& client) -> Task<> {
    const auto failed = co_await client.websocket(
        std::string(url), [](WebSocket&) -> Task<Result<>> { co_return fail(Errc::conflict); });
    EXPECT_EQ(failed.error(), Errc::conflict);
    const auto refused = co_await client.websocket("WS://127.0.0.1:80/none",
                                                   [](WebSocket&) -> Task<> { co_return; });
    EXPECT_EQ(refused.error(), error_of(Status::not_found));
    ClientWebSocketOptions options;
    EXPECT_TRUE(options.headers.add("Origin", "https://evil.test"));
    const auto forbidden = co_await client.websocket(
        std::string(url), [](WebSocket&) -> Task<> { co_return; }, std::move(options));
    EXPECT_EQ(forbidden.error(), error_of(Status::forbidden));
    ClientWebSocketOptions wrong;
    EXPECT_TRUE(wrong.headers.add("Upgrade", "h2c"));
    const auto invalid = co_await client.websocket(
        std::string(url), [](WebSocket&) -> Task<> { co_return; }, std::move(wrong));
    EXPECT_EQ(invalid.error(), Errc::bad_input);
  });
}

TEST_F(ClientWebSocketTest, RejectsWrongAnswers) {
  const std::vector<std::string_view> answers{
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n", "nonsense\r\n\r\n"};
  std::vector<std::vector<Step>> scripts;
  for (const std::string_view answer : answers) {
    scripts.push_back({{.answer = std::string(answer)}});
  }
  with_server(std::move(scripts), [&answers](Client& client) -> Task<> {
    for (const std::string_view answer : answers) {
      const auto ended =
          co_await client.websocket("ws://127.0.0.1:81/", [](WebSocket&) -> Task<> { co_return; });
      EXPECT_EQ(ended.error(), make_error_code(ClientError::bad_response)) << answer;
    }
  });
}

TEST_F(ClientWebSocketTest, AnswerHasTheLimitsOfTheClient) {
  Step step;
  step.answer = "HTTP/1.1 404 Not Found\r\nX-Long: " + std::string(100'000, 'x') +
                "\r\nContent-Length: 0\r\n\r\n";
  for (const std::uint32_t most : {99'000U, 101'000U}) {
    ClientOptions options;
    options.limits.response.head.headers_bytes_max = most;
    with_server({{step}}, std::move(options), [&](Client& client) -> Task<> {
      const auto ended =
          co_await client.websocket("ws://127.0.0.1:81/", [](WebSocket&) -> Task<> { co_return; });
      EXPECT_EQ(ended.error(), most > 100'000 ? error_of(Status::not_found)
                                              : make_error_code(ClientError::bad_response));
    });
  }
}

}  // namespace
}  // namespace weir::http::client_websocket_test
