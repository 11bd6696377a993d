// Tests that a slow client of a reverse proxy costs only itself.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/proxy/detail/upstream_plan.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_clients_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slots = 8;

/// A proxy whose core has eight requests at a time at its upstream.
class ProxyClientsTest : public ProxyFixture {
 protected:
  ProxyClientsTest() {
    plain_http2_ = PlainHttp2::prior_knowledge;
    options_.client.limits.connections_per_origin_max = slots;
    routes_.use<ClientAddress>(trusted_proxies({.proxies = {"127.0.0.1"}}));
    inner_.get("/", [] { return text("ok"); });
    inner_.post("/upload", [this](Request& request) -> Task<Response> {
      ++uploads_;
      const auto body = co_await request.body();
      if (!body) co_return Response(to_status(body.error()));
      co_return text(std::to_string(body->size()));
    });
    inner_.get("/large", [] { return text(std::string(5'000'000, 'x')); });
    inner_.get("/late", []() -> Task<Response> {
      std::ignore = co_await sleep(9s);
      co_return text("late");
    });
    inner_.websocket("/socket", [](WebSocket& socket) -> Task<Result<>> {
      for (;;) WEIR_CO_TRY(co_await socket.read());
    });
  }

  /// Sends a part of its body, and then nothing.
  static Task<Result<>> stall(BodySink& sink) {
    WEIR_CO_TRY(co_await sink.write(std::string(100, 'x')));
    co_return co_await sleep(1h);
  }
  static Task<> upload_slowly(Client& client) {
    ClientRequest request(Method::post, "http://127.0.0.1/upload");
    request.set_body("text/plain", http::Body(StreamFunction(stall)));
    std::ignore = co_await client.send(std::move(request));
  }
  static ClientOptions http2() {
    ClientOptions options;
    options.plain_http2 = true;
    return options;
  }
  /// Asks for a page over a new connection. Returns the status and the time that it took.
  Task<std::pair<int, Duration>> ask_once(std::string address = "127.0.0.1") {
    Client client;
    const Instant begin = loop_->now();
    ClientRequest request(Method::get, "http://127.0.0.1/");
    request.add_header("X-Forwarded-For", address);
    auto asking = client.send(std::move(request));
    const auto response = co_await std::move(asking);
    EXPECT_TRUE(response) << response.error().message();
    co_return std::pair(response ? code_of(response->status()) : 0, loop_->now() - begin);
  }
  Task<> expect_prompt_answers() {
    for (int count = 0; count < 8; ++count) {
      auto asking = ask_once();
      const auto answer = co_await std::move(asking);
      EXPECT_EQ(answer.first, 200);
      EXPECT_LT(answer.second, 100ms);
    }
  }
  /// Asks for a WebSocket over a new connection.
  MemoryPeer& open_websocket(const std::string& address = "127.0.0.1") {
    MemoryPeer& peer = connect();
    peer.send(
        "GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "X-Forwarded-For: " +
        address +
        "\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    return peer;
  }
  static bool is_open(MemoryPeer& peer) { return peer.received().starts_with("HTTP/1.1 101"); }
  void with_inner(const Body& use) { with_inner_server(inner_, options_, use); }

  Router inner_;
  ReverseProxyOptions options_;
  int uploads_ = 0;
};

TEST_F(ProxyClientsTest, ManySlowUploadsOfAFewConnectionsDelayNobody) {
  with_inner([this](Client&) -> Task<> {
    Client first(http2());
    Client second(http2());
    const auto body = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 64; ++count) {
        scope.spawn(upload_slowly(first));
        scope.spawn(upload_slowly(second));
      }
      std::ignore = co_await sleep(50ms);
      EXPECT_GT(uploads_, 0) << "a body without a length needs its upstream immediately";
      EXPECT_LT(uploads_, static_cast<int>(slots));
      co_await expect_prompt_answers();
      scope.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, body);
  });
}

// The upstream says in its settings how many requests it takes. The proxy has one connection to it.
TEST_F(ProxyClientsTest, ManySlowUploadsToAnUpstreamWithFewStreamsDelayNobody) {
  options_.client.plain_http2 = true;
  options_.client.limits.connections_per_origin_max = 1;
  Limits few;
  few.h2.streams_max = slots;
  const auto use = [this](Client&) -> Task<> {
    Client first(http2());
    Client second(http2());
    const auto body = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 64; ++count) {
        scope.spawn(upload_slowly(first));
        scope.spawn(upload_slowly(second));
      }
      std::ignore = co_await sleep(50ms);
      EXPECT_GT(uploads_, 1);
      EXPECT_LT(uploads_, static_cast<int>(slots));
      co_await expect_prompt_answers();
      scope.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, body);
  };
  with_inner_server(inner_, options_, use, PlainHttp2::prior_knowledge, few);
}

TEST_F(ProxyClientsTest, ManyUnreadResponsesOfAFewConnectionsDelayNobody) {
  with_inner([this](Client&) -> Task<> {
    Client first(http2());
    Client second(http2());
    std::vector<ClientResponse> unread;
    const auto get = [&unread](Client& client) -> Task<> {
      auto response = co_await client.get("http://127.0.0.1/large");
      if (response) unread.push_back(std::move(*response));
    };
    const auto body = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 64; ++count) {
        scope.spawn(get(first));
        scope.spawn(get(second));
      }
      std::ignore = co_await sleep(50ms);
      EXPECT_GT(unread.size(), 0U);
      co_await expect_prompt_answers();
      scope.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, body);
    unread.clear();
  });
}

// Each of these clients has one request only, so that its share does not limit it.
TEST_F(ProxyClientsTest, ASlowUploadLosesItsUpstreamToAClientThatWaits) {
  with_inner([this](Client&) -> Task<> {
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < slots; ++count) {
      peers.push_back(&connect());
      peers.back()->send(
          "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "5\r\nhello\r\n");
    }
    std::ignore = co_await sleep(10ms);
    EXPECT_EQ(uploads_, static_cast<int>(slots));
    auto asking = ask_once();
    const auto answer = co_await std::move(asking);
    EXPECT_EQ(answer.first, 200);
    EXPECT_GT(answer.second, 500ms);
    EXPECT_LT(answer.second, 1500ms);
    std::size_t ended = 0;
    for (MemoryPeer* const each : peers) ended += each->received().contains("408") ? 1 : 0;
    EXPECT_EQ(ended, 1U) << "one for the request that waits";
  });
}

TEST_F(ProxyClientsTest, AnUnreadResponseLosesItsUpstreamToAClientThatWaits) {
  with_inner([this](Client&) -> Task<> {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<ClientResponse> unread;
    for (std::size_t count = 0; count < slots; ++count) {
      clients.push_back(std::make_unique<Client>());
      auto response = co_await clients.back()->get("http://127.0.0.1/large");
      EXPECT_TRUE(response);
      if (response) unread.push_back(std::move(*response));
    }
    auto asking = ask_once();
    const auto answer = co_await std::move(asking);
    EXPECT_EQ(answer.first, 200);
    EXPECT_LT(answer.second, 2s);
    unread.clear();
  });
}

TEST_F(ProxyClientsTest, AShortBodyIsReadBeforeABusyUpstreamIsTaken) {
  with_inner([this](Client&) -> Task<> {
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < 3 * slots; ++count) {
      peers.push_back(&connect());
      peers.back()->send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello");
      std::ignore = co_await sleep(1ms);
    }
    EXPECT_EQ(uploads_, static_cast<int>(slots / 2));
    co_await expect_prompt_answers();
    MemoryPeer& last = *peers.back();
    EXPECT_EQ(last.send(std::string(995, 'x')), 995U);
    std::ignore = co_await sleep(10ms);
    EXPECT_TRUE(last.received().ends_with("1000")) << last.received();
  });
}

TEST_F(ProxyClientsTest, OneNetworkWithManyConnectionsLeavesUpstreamsForOthers) {
  with_inner([this](Client&) -> Task<> {
    auto first = ask_once("192.0.2.9");
    std::ignore = co_await std::move(first);
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < 5 * slots; ++count) {
      peers.push_back(&connect());
      peers.back()->send("GET /late HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8::" +
                         std::to_string(count) + "\r\n\r\n");
    }
    std::ignore = co_await sleep(10ms);
    for (const char* const address : {"192.0.2.9", "2001:db8:0:1::1"}) {
      auto asking = ask_once(address);
      const auto answer = co_await std::move(asking);
      EXPECT_EQ(answer.first, 200) << address;
      EXPECT_LT(answer.second, 100ms) << address;
    }
    for (MemoryPeer* const each : peers) each->reset();
    std::ignore = co_await sleep(10ms);
  });
}

TEST_F(ProxyClientsTest, WebSocketsAreLimited) {
  options_.websockets_max = slots;
  with_inner([this](Client&) -> Task<> {
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < slots + 2; ++count) {
      peers.push_back(&open_websocket());
      std::ignore = co_await sleep(1ms);
    }
    co_await expect_prompt_answers();
    std::ignore = co_await sleep(options_.client.limits.queue_timeout);
    std::string statuses;
    for (MemoryPeer* const each : peers) statuses += each->received().substr(9, 3) + " ";
    EXPECT_EQ(statuses, "101 101 101 101 101 101 101 101 503 503 ");
    peers.front()->reset();
    std::ignore = co_await sleep(10s);
    MemoryPeer& next = open_websocket();
    std::ignore = co_await sleep(1ms);
    EXPECT_TRUE(is_open(next));
    for (MemoryPeer* const each : peers) each->reset();
    next.reset();
    std::ignore = co_await sleep(10ms);
  });
}

TEST_F(ProxyClientsTest, TheIdlestWebSocketOfTheLargestNetworkGivesWay) {
  static constexpr std::string_view message("\x82\x81\0\0\0\0a", 7);
  static constexpr std::string_view try_again_later("\x88\x02\x03\xf5", 4);
  options_.websockets_max = slots;
  with_inner([this](Client&) -> Task<> {
    std::vector<MemoryPeer*> peers;
    for (std::size_t count = 0; count < slots + 2; ++count) {
      peers.push_back(&open_websocket("192.0.2.1"));
      std::ignore = co_await sleep(1ms);
    }
    peers.front()->send(message);
    std::ignore = co_await sleep(1ms);
    std::vector<MemoryPeer*> others;
    for (std::size_t count = 0; count < slots; ++count) {
      others.push_back(&open_websocket("192.0.2.9"));
      std::ignore = co_await sleep(50ms);
      EXPECT_EQ(is_open(*others.back()), count < slots / 2) << count;
    }
    std::string closed;
    for (MemoryPeer* const each : peers) {
      closed += each->received().ends_with(try_again_later) ? "c" : is_open(*each) ? "o" : "-";
    }
    EXPECT_EQ(closed, "occccooo--") << "each network has a half";
    for (MemoryPeer* const each : peers) each->reset();
    for (MemoryPeer* const each : others) each->reset();
    std::ignore = co_await sleep(10ms);
  });
}

TEST(UpstreamPlanTest, LeavesHalfOfTheDescriptorsToClients) {
  MemoryPlatform platform({.descriptors_max = 300});
  const auto loop = Loop::make(platform, {}).value();
  const ReverseProxyOptions options;
  UpstreamPlan plan;
  const UpstreamPlan::Share share = plan.share_of(*loop, 2, options);
  EXPECT_LE(share.connections + share.websockets, (300U - 64U) / 2);
  EXPECT_GE(share.connections, 50U);
  EXPECT_GE(share.websockets, 50U);
  EXPECT_EQ(plan.reserve().size(), share.connections + share.websockets);
  const ConnectionReserve::Use use(&plan.reserve(), *loop);
  const Router routes;
  {
    ServerState server(*loop, routes, {});
    EXPECT_EQ(server.connections().permits_max(), 300U - 64U - plan.reserve().size());
  }
  UpstreamPlan second;
  const UpstreamPlan::Share less = second.share_of(*loop, 2, options);
  EXPECT_LT(less.connections + less.websockets, share.connections + share.websockets);
}

class ProxyStart : public HttpTest {
 protected:
  ProxyStart() : HttpTest({.descriptors_max = 300}) {}
};

TEST_F(ProxyStart, TakesTheSocketsBeforeTheFirstRequest) {
  const ReverseProxy proxy = reverse_proxy("http://127.0.0.1:81");
  routes_.group("/api").fallback(proxy);
  routes_.get("/other", proxy);
  serve();
  constexpr std::size_t half = (300 - 64) / 2;
  EXPECT_EQ(server_->connections().permits_max(), half);
  const RouteDemands demands = server_->routes().table().demands(*loop_);
  EXPECT_EQ(demands.descriptors, half);
  ReverseProxyOptions planned;
  planned.client.limits.connections_max = half / 2;
  planned.websockets_max = half / 2;
  EXPECT_EQ(demands.core_bytes, memory_bound(planned).core);
  EXPECT_EQ(demands.request_bytes, memory_bound(planned).request);
}

TEST(ProxyMemory, IsThatOfItsConnections) {
  ReverseProxyOptions options;
  options.websockets_max = 0;
  const std::uint64_t one = memory_bound(options).core;
  EXPECT_LT(one, 100U << 20U) << "64 connections without a body";
  const std::uint64_t two = memory_bound(options, 2).core;
  EXPECT_GT(two, one + one / 2);
  EXPECT_LE(two, 2 * one);
  EXPECT_EQ(memory_bound(options, 16).core, memory_bound(options, 1000).core)
      << "ClientLimits::connections_max";
  options.client.limits.body_max *= 2;
  EXPECT_EQ(memory_bound(options).core, one) << "it collects no body";
  options.client.plain_http2 = true;
  EXPECT_GT(memory_bound(options).core, 2 * one);
}

TEST(ProxyMemory, GrowsWithItsLimits) {
  ReverseProxyOptions options;
  const ProxyMemoryBound usual = memory_bound(options);
  options.websockets_max *= 2;
  EXPECT_GT(memory_bound(options).core, usual.core);
  options.short_body_max *= 2;
  EXPECT_GT(memory_bound(options).request, usual.request);
}

}  // namespace
}  // namespace weir::http::reverse_proxy_clients_test
