// Tests of the WebSockets of a client over HTTP/2 (RFC 8441) against Weir's server.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/client_websocket.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::h2_client_websocket_test {
namespace {

using namespace std::chrono_literals;

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

/// Sends a message of this size, which returns.
Task<Result<>> send_one(WebSocket& socket, std::size_t size) {
  const std::string text(size, 'x');
  WEIR_CO_TRY(co_await socket.send(text));
  WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
  EXPECT_TRUE(message.is_text);
  EXPECT_TRUE(message.text() == text) << size;
  co_return {};
}

/// Sends messages of these sizes, each after the last one has returned.
Task<Result<>> send_sizes(WebSocket& socket, std::vector<std::size_t> sizes) {
  for (const std::size_t size : sizes) WEIR_CO_TRY(co_await send_one(socket, size));
  co_return {};
}

class H2ClientWebSocketTest : public HttpTest {
 protected:
  using Use = std::function<Task<>(Client&)>;

  H2ClientWebSocketTest() {
    plain_http2_ = PlainHttp2::prior_knowledge;
    options_.plain_http2 = true;
    routes_.websocket("/echo", echo, {.subprotocols = {"v2"}, .origins = {"https://app.test"}});
    routes_.get("/page", [] { return text("hello"); });
  }
  /// Runs `use` with a client, and expects that it leaves nothing open.
  void with_client(const Use& use) {
    serve(server_limits_);
    {
      Client client(options_);
      weir::run(*loop_, use(client));
      EXPECT_EQ(client.connection_count(), client.idle_count());
    }
    settle();
    EXPECT_EQ(server_->counters().websockets_open.value(), 0U);
  }
  /// Lets the server and the client speak TLS.
  void use_tls(std::vector<std::string> protocols_of_server) {
    tls::SelfSigned certificate;
    certificate.names = {"127.0.0.1"};
    certificate.not_before = platform_.wall_time();
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    tls::ClientOptions client;
    client.trust = {.system = false, .files = {}, .pem = identity.chain()};
    client.protocols = {"h2", "http/1.1"};
    options_.tls = std::make_shared<tls::Client>(std::move(client));
    options_.plain_http2 = false;
    tls::ServerOptions server;
    server.identities = {identity};
    server.protocols = std::move(protocols_of_server);
    tls_ = std::make_shared<tls::Server>(std::move(server));
  }
  static Task<> get_page(Client& client) {
    auto response = co_await client.get("http://127.0.0.1/page");
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->version(), Version::http_2);
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "hello");
  }
  std::uint64_t accepted() { return server_->counters().connections_accepted.value(); }

  static constexpr std::string_view url = "ws://127.0.0.1/echo";
  ClientOptions options_;
  Limits server_limits_;
};

TEST_F(H2ClientWebSocketTest, TalksOverAStream) {
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    EXPECT_EQ(socket.subprotocol(), "v2");
    EXPECT_NE(socket.peer_address(), os::Address());
    return send_sizes(socket, {5, 200'000, 0, 70'000});
  };
  with_client([&talk](Client& client) -> Task<> {
    for (int count = 0; count < 3; ++count) {
      ClientWebSocketOptions options;
      options.subprotocols = {"v1", "v2"};
      const auto ended = co_await client.websocket(std::string(url), talk, std::move(options));
      EXPECT_TRUE(ended) << ended.error().message();
      EXPECT_EQ(client.idle_count(), 1U);
    }
    co_await get_page(client);
  });
  EXPECT_EQ(server_->counters().websockets.value(), 3U);
  EXPECT_EQ(accepted(), 1U);
}

TEST_F(H2ClientWebSocketTest, SharesAConnectionWithOthersAndWithRequests) {
  std::size_t ended = 0;
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(co_await send_one(socket, 100'000));
    WEIR_CO_TRY(co_await sleep(1s));
    co_return co_await send_one(socket, 5);
  };
  const auto open = [&](Client& client) -> Task<> {
    if (co_await client.websocket(std::string(url), talk)) ++ended;
  };
  with_client([&](Client& client) -> Task<> {
    const auto body = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 20; ++count) scope.spawn(open(client));
      for (int count = 0; count < 20; ++count) {
        co_await get_page(client);
        static_cast<void>(co_await sleep(10ms));
      }
      EXPECT_EQ(client.connection_count(), 1U);
      EXPECT_EQ(client.idle_count(), 0U);
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
  });
  EXPECT_EQ(ended, 20U);
  EXPECT_EQ(accepted(), 1U);
}

TEST_F(H2ClientWebSocketTest, PassesMoreThanSmallWindows) {
  options_.limits.http2.stream_window = 1'000;
  server_limits_.h2.stream_window = 1'500;
  const auto talk = [](WebSocket& socket) { return send_sizes(socket, {300'000, 1'000, 40'000}); };
  with_client([&talk](Client& client) -> Task<> {
    const auto ended = co_await client.websocket(std::string(url), talk);
    EXPECT_TRUE(ended) << ended.error().message();
  });
}

TEST_F(H2ClientWebSocketTest, CompressesMessages) {
  if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  constexpr WebSocketCompression compression{.send_window_bits = 12, .bytes_min = 0};
  routes_.websocket("/compressed", echo, {.compression = compression});
  const auto talk = [](WebSocket& socket) { return send_sizes(socket, {5, 100'000, 5}); };
  with_client([&](Client& client) -> Task<> {
    ClientWebSocketOptions options;
    options.compression = WebSocketCompression{.receive_window_bits = 12, .bytes_min = 0};
    ClientPool pool(options_);
    auto opening = open_websocket(pool, *Url::parse("http://127.0.0.1/compressed"), options);
    auto answer = co_await std::move(opening);
    EXPECT_TRUE(answer);
    if (!answer) co_return;
    auto& opened = std::get<OpenedWebSocket>(*answer);
    EXPECT_TRUE(opened.is_http2);
    EXPECT_TRUE(opened.deflate);
    auto using_it = use_websocket(std::move(opened), talk, options);
    const auto ended = co_await std::move(using_it);
    EXPECT_TRUE(ended) << ended.error().message();
    const auto other =
        co_await client.websocket("ws://127.0.0.1/compressed", talk, std::move(options));
    EXPECT_TRUE(other) << other.error().message();
  });
}

TEST_F(H2ClientWebSocketTest, ReturnsTheStatusOfARefusal) {
  const auto nothing = [](WebSocket&) -> Task<> {
    ADD_FAILURE() << "a refused WebSocket is used";
    co_return;
  };
  with_client([&nothing](Client& client) -> Task<> {
    const auto missing = co_await client.websocket("ws://127.0.0.1/none", nothing);
    EXPECT_EQ(missing.error(), error_of(Status::not_found));
    ClientWebSocketOptions options;
    EXPECT_TRUE(options.headers.add("Origin", "https://evil.test"));
    const auto forbidden = co_await client.websocket(std::string(url), nothing, std::move(options));
    EXPECT_EQ(forbidden.error(), error_of(Status::forbidden));
    const auto page = co_await client.websocket("ws://127.0.0.1/page", nothing);
    EXPECT_FALSE(page);
    ClientWebSocketOptions wrong;
    EXPECT_TRUE(wrong.headers.add("Sec-WebSocket-Version", "12"));
    const auto invalid = co_await client.websocket(std::string(url), nothing, std::move(wrong));
    EXPECT_EQ(invalid.error(), Errc::bad_input);
    const auto failed = co_await client.websocket(
        std::string(url), [](WebSocket&) -> Task<Result<>> { co_return fail(Errc::conflict); });
    EXPECT_EQ(failed.error(), Errc::conflict);
    co_await get_page(client);
  });
  EXPECT_EQ(accepted(), 1U) << "a refusal keeps the connection";
}

TEST_F(H2ClientWebSocketTest, HasTheBodyOfARefusal) {
  with_client([this](Client&) -> Task<> {
    ClientPool pool(options_);
    const ClientWebSocketOptions options;
    auto opening = open_websocket(pool, *Url::parse("http://127.0.0.1/none"), options);
    auto answer = co_await std::move(opening);
    EXPECT_TRUE(answer);
    if (!answer) co_return;
    auto& refused = std::get<ClientResponse>(*answer);
    EXPECT_EQ(refused.status(), Status::not_found);
    EXPECT_EQ(refused.url().text(), "http://127.0.0.1/none");
    const auto body = co_await refused.body();
    EXPECT_TRUE(body && body->find("404") != std::string::npos);
  });
}

TEST_F(H2ClientWebSocketTest, UsesAConnectionOfItsOwnIfAsked) {
  with_client([](Client& client) -> Task<> {
    co_await get_page(client);
    ClientWebSocketOptions options;
    options.http2 = false;
    const auto talk = [&client](WebSocket& socket) -> Task<Result<>> {
      EXPECT_EQ(client.idle_count(), 1U) << "the connection of HTTP/2";
      return send_sizes(socket, {5});
    };
    EXPECT_TRUE(co_await client.websocket(std::string(url), talk, std::move(options)));
  });
  EXPECT_EQ(accepted(), 2U);
}

TEST_F(H2ClientWebSocketTest, OpensAnotherConnectionAboveTheLimitOfStreams) {
  server_limits_.h2.streams_max = 2;
  std::size_t ended = 0;
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(co_await send_one(socket, 5));
    WEIR_CO_TRY(co_await sleep(1s));
    co_return {};
  };
  const auto open = [&](Client& client) -> Task<> {
    if (co_await client.websocket(std::string(url), talk)) ++ended;
  };
  with_client([&](Client& client) -> Task<> {
    for (int round = 0; round < 3; ++round) {
      const auto body = [&](Scope& scope) -> Task<> {
        for (int count = 0; count < 3; ++count) scope.spawn(open(client));
        static_cast<void>(co_await sleep(100ms));
        co_await get_page(client);
        EXPECT_EQ(client.connection_count(), 2U);
      };
      static_cast<void>(co_await with_scope(OnFailure::isolate, body));
    }
  });
  EXPECT_EQ(ended, 9U);
  EXPECT_EQ(accepted(), 2U) << "closed WebSockets free their streams";
}

TEST_F(H2ClientWebSocketTest, StaysOpenLongerThanItsConnectionIsUsedForOthers) {
  options_.limits.age_max = 10s;
  options_.limits.ping_interval = 5s;
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sleep(15min));
    co_return co_await send_one(socket, 5);
  };
  with_client([&](Client& client) -> Task<> {
    const auto ended = co_await client.websocket(std::string(url), talk);
    EXPECT_TRUE(ended) << ended.error().message();
  });
}

TEST_F(H2ClientWebSocketTest, GetsTheCloseOfAServerThatDrains) {
  WebSocketCloseCode code{};
  const auto talk = [&](WebSocket& socket) -> Task<Result<>> {
    drain();
    const auto message = co_await socket.read();
    EXPECT_EQ(message.error(), Errc::end_of_stream);
    code = socket.close_code();
    co_return {};
  };
  with_client([&](Client& client) -> Task<> {
    const auto ended = co_await client.websocket(std::string(url), talk);
    EXPECT_TRUE(ended) << ended.error().message();
  });
  EXPECT_EQ(code, WebSocketCloseCode::going_away);
}

TEST_F(H2ClientWebSocketTest, TalksOverTls) {
  use_tls({"h2", "http/1.1"});
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    EXPECT_NE(socket.tls(), nullptr);
    if (socket.tls() != nullptr) {
      EXPECT_EQ(socket.tls()->protocol, "h2");
    }
    return send_sizes(socket, {5, 100'000});
  };
  with_client([&talk](Client& client) -> Task<> {
    for (int count = 0; count < 2; ++count) {
      const auto ended = co_await client.websocket("wss://127.0.0.1:80/echo", talk);
      EXPECT_TRUE(ended) << ended.error().message();
    }
  });
  EXPECT_EQ(accepted(), 1U);
}

TEST_F(H2ClientWebSocketTest, TakesTheConnectionOfAServerThatChoosesHttp1) {
  use_tls({"http/1.1"});
  const auto talk = [](WebSocket& socket) -> Task<Result<>> {
    EXPECT_NE(socket.tls(), nullptr);
    if (socket.tls() != nullptr) {
      EXPECT_EQ(socket.tls()->protocol, "http/1.1");
    }
    return send_sizes(socket, {5, 100'000});
  };
  with_client([&talk](Client& client) -> Task<> {
    for (int count = 0; count < 2; ++count) {
      const auto ended = co_await client.websocket("wss://127.0.0.1:80/echo", talk);
      EXPECT_TRUE(ended) << ended.error().message();
      EXPECT_EQ(client.connection_count(), 0U) << "the pool does not count it";
    }
  });
  EXPECT_EQ(accepted(), 2U);
}

TEST_F(H2ClientWebSocketTest, WaitsForNoRequestToAServerOfHttp1) {
  use_tls({"http/1.1"});
  options_.limits.connections_per_origin_max = 1;
  routes_.get("/slow", []() -> Task<Response> {
    static_cast<void>(co_await sleep(2s));
    co_return text("slow");
  });
  const auto talk = [](WebSocket& socket) { return send_sizes(socket, {5}); };
  with_client([&](Client& client) -> Task<> {
    bool answered = false;
    const auto get = [&]() -> Task<> {
      const auto response = co_await client.get("https://127.0.0.1:80/slow");
      EXPECT_TRUE(response);
      answered = true;
    };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(get());
      static_cast<void>(co_await sleep(1s));
      EXPECT_TRUE(co_await client.websocket("wss://127.0.0.1:80/echo", talk));
      EXPECT_FALSE(answered);
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
  });
}

TEST_F(H2ClientWebSocketTest, EndsWithItsConnection) {
  const auto talk = [this](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(co_await send_one(socket, 5));
    for (int each = 0; each < 1000; ++each) platform_.reset_connection(each);
    const auto message = co_await socket.read();
    EXPECT_EQ(message.error(), system_error(ECONNRESET));
    const auto sent = co_await socket.send("late");
    EXPECT_EQ(sent.error(), Errc::closed);
    co_return fail(message.error());
  };
  with_client([&](Client& client) -> Task<> {
    const auto ended = co_await client.websocket(std::string(url), talk);
    EXPECT_EQ(ended.error(), system_error(ECONNRESET));
  });
}

TEST_F(H2ClientWebSocketTest, CancelsAFunctionThatDoesNotReadIfTheConnectionIsLost) {
  bool cancelled = false;
  const auto talk = [&](WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(co_await send_one(socket, 5));
    for (int each = 0; each < 1000; ++each) platform_.reset_connection(each);
    const auto slept = co_await sleep(1h);
    cancelled = !slept && slept.error() == Errc::cancelled;
    co_return slept;
  };
  with_client([&](Client& client) -> Task<> {
    EXPECT_FALSE(co_await client.websocket(std::string(url), talk));
  });
  EXPECT_TRUE(cancelled);
}

/// A server and a client, of which one lacks memory.
class RunWithoutMemory : public HttpFixture {
 public:
  /// Fails the allocation after `count` others. Returns false if fewer allocations happened.
  bool run(std::size_t count) {
    plain_http2_ = PlainHttp2::prior_knowledge;
    routes_.websocket("/echo", echo);
    serve();
    bool failed = false;
    {
      ClientOptions options;
      options.plain_http2 = true;
      Client client(std::move(options));
      const auto use = [&]() -> Task<> {
        const auto talk = [](WebSocket& socket) { return send_sizes(socket, {5, 100'000}); };
        loop_->blocks().fail_after(count);
        try {
          const auto ended = co_await client.websocket("ws://127.0.0.1/echo", talk);
          if (!ended) ++failed_;
        } catch (const std::bad_alloc&) {
          ++failed_;
        }
        failed = !loop_->blocks().will_fail();
        use_up_failure();
      };
      weir::run(*loop_, use());
      pass(std::chrono::seconds(6));
      EXPECT_EQ(client.connection_count(), 0U);
    }
    return failed;
  }
  std::size_t failed_ = 0;

 private:
  void use_up_failure() {
    while (loop_->blocks().will_fail()) {
      try {
        BlockPool::release(BlockPool::allocate(16));
      } catch (const std::bad_alloc&) {
      }
    }
  }
};

TEST(H2ClientWebSocketMemory, LeavesNothingWithoutMemory) {
  std::size_t count = 0;
  std::size_t failed = 0;
  for (bool more = true; more && !testing::Test::HasFailure() && count < 5'000; ++count) {
    RunWithoutMemory each;
    more = each.run(count);
    failed += each.failed_;
  }
  EXPECT_GT(count, 50U);
  EXPECT_LT(count, 5'000U);
  EXPECT_GT(failed, 20U);
}

}  // namespace
}  // namespace weir::http::h2_client_websocket_test
