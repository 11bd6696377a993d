// Tests of the memory that a server asks of its machine when it starts: each of its features
// counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/matching/core_demands.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/runtime/checks/detail/start_checks.hpp"

namespace weir::http::memory_check_test {
namespace {

Task<Result<>> read(WebSocket& socket) {
  for (;;) WEIR_CO_TRY(co_await socket.read());
}

/// A handler, and middleware, that takes memory and descriptors on each core.
struct Demanding {
  const void* owner;
  CoreDemands wanted;
  Response operator()() const { return text("ok"); }
  CoreDemands demands(Loop&) const {
    CoreDemands all = wanted;
    all.owner = owner;
    return all;
  }
};
struct DemandingFilter : Demanding {
  void after(Request&, Response&) const {}
};

class MemoryCheck : public HttpTest {
 protected:
  MemoryCheck() {
    limits_.connections_max = 1'000;
    limits_.body_max = 16 * 1024;
  }
  /// Serves on a machine that has enough memory for a plain server. Returns true if it is enough.
  bool is_enough(std::string_view check = "memory") {
    checks::MachineFacts facts;
    facts.memory_bytes = memory_bound(limits_, {.cores = 1}).total();
    facts.open_files_max = limits_.connections_max + checks::server_descriptors(1) + 100;
    auto& checks = loop_->group().slots().get<checks::StartChecks>(platform_, facts);
    serve(limits_);
    const std::vector<checks::Finding> logged = checks.logged();
    return std::ranges::find(logged, check, &checks::Finding::check) == logged.end();
  }
  RouteDemands demands() { return server_->routes().table().demands(*loop_); }
  Limits limits_;
};

TEST_F(MemoryCheck, IsSilentForAPlainServer) {
  routes_.get("/", [] { return text("ok"); });
  EXPECT_TRUE(is_enough());
}

TEST_F(MemoryCheck, CountsPlainHttp2) {
  plain_http2_ = PlainHttp2::prior_knowledge;
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsWebSockets) {
  routes_.websocket("/chat", read);
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsTheWebSocketsOfAHandler) {
  routes_.get("/chat", [](const Request& request) { return accept_websocket(request, read); },
              {.websocket = std::make_shared<const WebSocketOptions>()});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsTheProxyProtocol) {
  ProxyProtocolOptions options;
  options.proxies = {"10.0.0.0/8"};
  proxy_protocol_ = std::make_shared<const ProxyProtocol>(options);
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsTheLargestBodyOfARoute) {
  routes_.post("/upload", [] { return text("ok"); }, {.body_max = 1024 * 1024});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsTheBodyOfAFallback) {
  routes_.fallback([] { return text("ok"); }, {.body_max = 1024 * 1024});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsWhatAHandlerTakesOnACore) {
  routes_.get("/", Demanding{this, {.core_bytes = 1}});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsWhatAHandlerTakesForEachRequest) {
  routes_.group("/api").fallback(Demanding{this, {.request_bytes = 1}});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsWhatMiddlewareTakes) {
  routes_.use(DemandingFilter{{this, {.core_bytes = 1}}});
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, CountsWhatMiddlewareOfAGroupTakes) {
  routes_.group("/api", DemandingFilter{{this, {.body_max = 1024 * 1024}}}).get("/", [] {
    return text("ok");
  });
  EXPECT_FALSE(is_enough());
}

TEST_F(MemoryCheck, AddsTheDemandsOfEachOwnerOnce) {
  const int other = 0;
  routes_.get("/a", Demanding{this, {.core_bytes = 7, .descriptors = 3}});
  routes_.get("/b", Demanding{this, {.request_bytes = 9, .core_bytes = 8}});
  routes_.get("/c", Demanding{&other, {.request_bytes = 4, .core_bytes = 30, .descriptors = 5}});
  serve(limits_);
  EXPECT_EQ(demands().core_bytes, 38U);
  EXPECT_EQ(demands().request_bytes, 9U);
  EXPECT_EQ(demands().descriptors, 8U);
}

TEST_F(MemoryCheck, HasEnoughDescriptorsForAPlainServer) {
  EXPECT_TRUE(is_enough("descriptors"));
}

TEST_F(MemoryCheck, CountsTheDescriptorsOfAHandler) {
  routes_.get("/", Demanding{this, {.descriptors = 101}});
  EXPECT_FALSE(is_enough("descriptors"));
}

}  // namespace
}  // namespace weir::http::memory_check_test
