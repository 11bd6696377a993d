// Tests the examples of WebSockets over real sockets and on two cores, on every backend.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/http/test/ws_frames.hpp"

namespace weir::tests::websocket_examples_test {
namespace {

using http::WsRole;
namespace ws = http::ws;

/// Returns true when the client has received `text`, after at most ten seconds.
bool receives(Client& client, std::string_view text) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (client.unread().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Client open(const Server& server, std::string_view target) {
  Client client = server.connect();
  const std::string request =
      "GET " + std::string(target) +
      " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  EXPECT_TRUE(client.send(request));
  EXPECT_TRUE(receives(client, "\r\n\r\n")) << client.unread();
  return client;
}

std::string text_frame(std::string_view text) {
  return ws::frame_to(WsRole::server, ws::fin | ws::text_frame, text);
}
std::string answered_text(std::string_view text) {
  return ws::frame_to(WsRole::client, ws::fin | ws::text_frame, text);
}
std::string close_frame(WsRole to, std::uint64_t code) {
  return ws::frame_to(to, ws::fin | ws::close_frame, ws::number(code, 2));
}

/// Returns the payloads of all frames behind the response, joined.
std::string messages_of(Client& client) {
  std::string received = client.unread();
  received.erase(0, received.find("\r\n\r\n") + 4);
  MutableBytes rest(reinterpret_cast<std::byte*>(received.data()), received.size());
  std::string messages;
  http::WsFrameReader reader(WsRole::client);
  while (!rest.empty()) {
    const http::WsFrameEvent event = reader.next(rest);
    rest = rest.subspan(event.consumed);
    if (event.kind != http::WsFrameEvent::Kind::payload) break;
    messages += to_text(event.bytes);
  }
  return messages;
}

class ExampleWebSocket : public EachBackend {};

TEST_P(ExampleWebSocket, EchoReturnsMessagesUntilTheClose) {
  Server server("websocket_echo", GetParam());
  Client client = open(server, "/ws");
  const std::string large(300'000, 'x');
  ASSERT_TRUE(client.send(text_frame("hello") + text_frame(large)));
  EXPECT_TRUE(receives(client, answered_text("hello") + answered_text(large)));
  ASSERT_TRUE(client.send(close_frame(WsRole::server, 1000)));
  EXPECT_TRUE(receives(client, close_frame(WsRole::client, 1000)));
}

TEST_P(ExampleWebSocket, GatewayPassesTheEchoOn) {
  Server echo("websocket_echo", GetParam());
  Server gateway("gateway", GetParam(), {"http://127.0.0.1:" + std::to_string(echo.port())});
  Client client = open(gateway, "/api/ws");
  ASSERT_TRUE(client.send(text_frame("hello") + text_frame(std::string(300'000, '#'))));
  EXPECT_TRUE(receives(client, answered_text("hello")));
  ASSERT_TRUE(client.send(text_frame("end")));
  EXPECT_TRUE(receives(client, answered_text("end")));
  EXPECT_TRUE(messages_of(client) == "hello" + std::string(300'000, '#') + "end");
  gateway.process().signal(SIGTERM);
  EXPECT_TRUE(receives(client, close_frame(WsRole::client, 1001)));
  ASSERT_TRUE(client.send(close_frame(WsRole::server, 1001)));
  EXPECT_EQ(gateway.process().wait_for_exit(), 0) << gateway.process().errors();
}

TEST_P(ExampleWebSocket, ChatReachesTheMembersOnAllCores) {
  Server server("websocket_chat", GetParam());
  constexpr int count = 16;  // the kernel spreads them over both cores
  std::vector<Client> members;
  for (int number = 0; number < count; ++number) {
    members.push_back(open(server, "/chat/tea?name=m" + std::to_string(number)));
    ASSERT_TRUE(receives(members.back(), "m" + std::to_string(number) + " has come"));
  }
  Client other = open(server, "/chat/coffee?name=other");
  ASSERT_TRUE(members.front().send(text_frame("hello")));
  for (Client& each : members) EXPECT_TRUE(receives(each, answered_text("m0: hello")));
  ASSERT_TRUE(receives(other, "other has come"));
  EXPECT_EQ(other.unread().find("m0"), std::string::npos) << "it is in another room";
  server.process().signal(SIGTERM);
  members.push_back(std::move(other));
  for (Client& each : members) {
    EXPECT_TRUE(receives(each, close_frame(WsRole::client, 1001)));
    EXPECT_TRUE(each.send(close_frame(WsRole::server, 1001)));
  }
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleWebSocket, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::websocket_examples_test
