// A handler that keeps its core for long is named by its route, and what servers count is told.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

class SlowRequests : public HttpTest {
 protected:
  /// What computing for so long is in virtual time.
  void compute(Duration length) { host_.clock().move_to(host_.now() + length); }
  /// Whom it names for this, on one connection.
  std::vector<SlowPlace> places_of(std::string_view requests) {
    talk(connect(), requests);
    pass(1s);
    return loop_->group().slow_turns().places();
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
  const auto places = places_of(requests);
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].name, "GET /slow/{name}");
}

TEST_F(SlowRequests, AreToldOnceAndCountedEachTime) {
  routes_.post("/slow", [this] {
    compute(80ms);
    return text("done");
  });
  serve();
  MemoryPeer& peer = connect();
  for (int i = 0; i < 10; ++i) {
    talk(peer, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  }
  ASSERT_EQ(host_.logged().size(), 1U);
  EXPECT_NE(host_.logged()[0].find("a turn took 80 ms: POST /slow "), std::string::npos)
      << host_.logged()[0];
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  EXPECT_EQ(loop_->group().slow_turns().places().front().turns, 10U);
}

TEST_F(SlowRequests, AreNamedWhenTheirHandlersMayWait) {
  const auto answer = [this]() -> Task<std::vector<int>> {
    compute(80ms);
    co_return std::vector<int>(3);
  };
  routes_.get("/before", answer);
  routes_.get("/between", [this]() -> Task<Response> {
    compute(80ms);
    static_cast<void>(co_await sleep(1ms));
    co_return text("done");
  });
  routes_.get("/after", [this]() -> Task<Response> {
    static_cast<void>(co_await sleep(1ms));
    compute(80ms);
    co_return text("done");
  });
  routes_.get("/inside", [answer]() -> Task<Response> {
    static_cast<void>(co_await sleep(1ms));
    auto numbers = co_await answer();
    co_return json(numbers);
  });
  serve();
  for (const std::string_view path : {"/before", "/between", "/after"}) places_of(get(path));
  const auto places = places_of(get("/inside"));
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[0].name, "GET /after");
  EXPECT_EQ(places[1].name, "GET /before");
  EXPECT_EQ(places[2].name, "GET /between");
  EXPECT_EQ(places[3].name, "GET /inside");
}

TEST_F(SlowRequests, FiguresOfItsServersAreTheLoops) {
  routes_.get("/", [] { return text("done"); });
  serve();
  talk(connect(), get("/") + get("/"));
  talk(connect(), "GET / HTTP/1.1\r\n\r\n");
  const auto value_of = [this](std::string_view name) -> std::uint64_t {
    const FigureSum sum = loop_->figures().read();
    for (const Figure& each : sum.figures()) {
      if (each.name == name) return each.value;
    }
    return 0;
  };
  EXPECT_EQ(value_of("http connections"), 2U);
  EXPECT_EQ(value_of("http connections open"), 2U);
  EXPECT_EQ(value_of("http requests"), 2U);
  EXPECT_EQ(value_of("http responses"), 3U);
  EXPECT_EQ(value_of("http refused: missing_host"), 1U);
  EXPECT_EQ(value_of("http refused: bad_host"), 0U);
  shut_down();
  EXPECT_EQ(value_of("http connections"), 2U) << "totals stay";
  EXPECT_EQ(value_of("http connections open"), 0U);
}

}  // namespace
}  // namespace weir::http
