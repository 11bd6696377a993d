// Tests that a slow handler is named by its route, and that the servers' counters are metrics.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::slow_requests_test {
namespace {

class SlowRequests : public HttpTest {
 protected:
  /// Advances the virtual clock, as a computation of this length would.
  void compute(Duration length) { platform_.clock().move_to(platform_.now() + length); }
  /// Returns the stalls after these requests on one connection.
  std::vector<loop::StallSummary> stalls_of(std::string_view requests) {
    talk(connect(), requests);
    pass(1s);
    return loop_->group().stall_log().summaries();
  }
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
};

TEST_F(SlowRequests, AreNamedByTheirRouteAmongOthersOfTheirTurn) {
  routes_.get("/slow/{name}", [this](std::string_view) {
    compute(80ms);
    return text("done");
  });
  routes_.get("/quick", [this] {
    compute(1ms);
    return text("done");
  });
  serve();
  std::string requests;
  for (int i = 0; i < 10; ++i) requests += get("/quick") + get("/slow/me") + get("/quick");
  const auto stalls = stalls_of(requests);
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls[0].name, "GET /slow/{name}");
}

TEST_F(SlowRequests, AreLoggedOnceAndCountedEachTime) {
  routes_.post("/slow", [this] {
    compute(80ms);
    return text("done");
  });
  serve();
  MemoryPeer& peer = connect();
  for (int i = 0; i < 10; ++i) {
    talk(peer, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  }
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_NE(platform_.logged()[0].find("slow loop turn: 80 ms: POST /slow "), std::string::npos)
      << platform_.logged()[0];
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  EXPECT_EQ(loop_->group().stall_log().summaries().front().turns, 10U);
}

TEST_F(SlowRequests, AreNamedWhenTheirHandlersMayWait) {
  const auto answer = [this]() -> Task<std::vector<int>> {
    compute(80ms);
    co_return std::vector<int>(3);
  };
  routes_.get("/before", answer);
  routes_.get("/between", [this]() -> Task<Response> {
    compute(80ms);
    std::ignore = co_await sleep(1ms);
    co_return text("done");
  });
  routes_.get("/after", [this]() -> Task<Response> {
    std::ignore = co_await sleep(1ms);
    compute(80ms);
    co_return text("done");
  });
  routes_.get("/inside", [answer]() -> Task<Response> {
    std::ignore = co_await sleep(1ms);
    auto numbers = co_await answer();
    co_return json(numbers);
  });
  serve();
  for (const std::string_view path : {"/before", "/between", "/after"}) stalls_of(get(path));
  const auto stalls = stalls_of(get("/inside"));
  ASSERT_EQ(stalls.size(), 4U);
  EXPECT_EQ(stalls[0].name, "GET /after");
  EXPECT_EQ(stalls[1].name, "GET /before");
  EXPECT_EQ(stalls[2].name, "GET /between");
  EXPECT_EQ(stalls[3].name, "GET /inside");
}

TEST_F(SlowRequests, MetricsOfServersBelongToTheLoop) {
  routes_.get("/", [] { return text("done"); });
  serve();
  talk(connect(), get("/") + get("/"));
  talk(connect(), "GET / HTTP/1.1\r\n\r\n");
  const auto value_of = [this](std::string_view name) -> std::uint64_t {
    const MetricSnapshot sum = loop_->metrics().read();
    for (const Metric& each : sum.metrics()) {
      if (each.name == name) return each.value;
    }
    return 0;
  };
  EXPECT_EQ(value_of("http connections"), 2U);
  EXPECT_EQ(value_of("http connections open"), 2U);
  EXPECT_EQ(value_of("http requests"), 2U);
  EXPECT_EQ(value_of("http responses"), 3U);
  EXPECT_EQ(value_of("http requests rejected: missing_host"), 1U);
  EXPECT_EQ(value_of("http requests rejected: bad_host"), 0U);
  shut_down();
  EXPECT_EQ(value_of("http connections"), 2U) << "totals stay";
  EXPECT_EQ(value_of("http connections open"), 0U);
}

}  // namespace
}  // namespace weir::http::slow_requests_test
