// Tests of the memory that a server asks of its machine when it starts: each of its features
// counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "weir/http/server/limits.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/runtime/checks/detail/start_checks.hpp"

namespace weir::http::memory_check_test {
namespace {

Task<Result<>> read(WebSocket& socket) {
  for (;;) WEIR_CO_TRY(co_await socket.read());
}

class MemoryCheck : public HttpTest {
 protected:
  MemoryCheck() {
    limits_.connections_max = 1'000;
    limits_.body_max = 16 * 1024;
  }
  /// Serves on a machine that has enough memory for a plain server. Returns true if it is enough.
  bool is_enough() {
    checks::MachineFacts facts;
    facts.memory_bytes = memory_bound(limits_, {.cores = 1}).total();
    auto& checks = loop_->group().slots().get<checks::StartChecks>(platform_, facts);
    serve(limits_);
    const std::vector<checks::Finding> logged = checks.logged();
    return std::ranges::find(logged, "memory", &checks::Finding::check) == logged.end();
  }
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

}  // namespace
}  // namespace weir::http::memory_check_test
