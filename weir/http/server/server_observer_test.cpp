// Tests of the observer of a server.
#include "weir/http/server/server_observer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::server_observer_test {
namespace {

/// Describes each record: method, route, status, version, milliseconds.
class Observer final : public ServerObserver {
 public:
  void on_requests_ended(Loop&, Instant end,
                         std::span<const EndedRequest> ended) noexcept override {
    ++batches;
    requests += ended.size();
    for (const EndedRequest& each : ended) {
      lines.append(each.method == Method::other ? "OTHER" : name_of(each.method)).append(" ");
      lines.append(each.route == nullptr ? "-" : each.route->pattern).append(" ");
      lines.append(std::to_string(code_of(each.status)));
      lines.append(each.version == Version::http_2 ? " 2 " : " 1 ");
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(end - each.begin);
      lines.append(std::to_string(took.count())).append(each.complete ? "\n" : " cut\n");
    }
  }
  std::string take() { return std::exchange(lines, {}); }

  std::string lines;
  std::size_t batches = 0;
  std::size_t requests = 0;
};

Task<Result<>> write_slowly(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("12345"));
  WEIR_CO_TRY(co_await sleep(1s));
  co_return co_await sink.write("67890");
}
Task<Response> answer_slowly() {
  std::ignore = co_await sleep(2s);
  co_return text("slow");
}

void add_routes(Router& routes) {
  routes.get("/text/{x}", [](std::string_view x) { return text(x); });
  routes.get("/slow", answer_slowly);
  routes.get("/late", answer_slowly, {.timeout = 1s});
  routes.get("/stream", [] { return stream("a/b", write_slowly); });
  routes.post("/post", [](Json<std::string> body) { return text(std::move(*body)); },
              {.body_max = 4});
}

class ServerObserverTest : public HttpTest {
 protected:
  ServerObserverTest() {
    add_routes(routes_);
    observer_ = &observed_;
  }
  std::string ask(std::string_view line, std::string_view rest = "\r\n") {
    talk(connect(), std::string(line) + " HTTP/1.1\r\nHost: a\r\n" + std::string(rest));
    pass(3s);
    return observed_.take();
  }
  std::uint64_t active() const {
    const MetricSnapshot snapshot = loop_->metrics().read();
    for (const Metric& each : snapshot.metrics()) {
      if (each.name == "http requests active") return each.value;
    }
    return 99;
  }

  Observer observed_;
};

TEST_F(ServerObserverTest, RecordsWhatTheServerAnswers) {
  serve();
  EXPECT_EQ(ask("GET /text/word"), "GET /text/{x} 200 1 0\n");
  EXPECT_EQ(ask("HEAD /text/word"), "HEAD /text/{x} 200 1 0\n");
  EXPECT_EQ(ask("GET /slow"), "GET /slow 200 1 2000\n");
  EXPECT_EQ(ask("GET /late"), "GET /late 503 1 1000\n");
  EXPECT_EQ(ask("GET /stream"), "GET /stream 200 1 1000\n");
  EXPECT_EQ(ask("GET /none"), "GET - 404 1 0\n");
  EXPECT_EQ(ask("SING /text/a"), "OTHER - 405 1 0\n");
  EXPECT_EQ(ask("POST /post", "Content-Length: 9\r\n\r\n123456789"), "POST /post 413 1 0\n");
  EXPECT_EQ(ask("GET /text/a", "Host: b\r\n\r\n"), "OTHER - 400 1 0\n");
  EXPECT_EQ(active(), 0U);
}

TEST_F(ServerObserverTest, RecordsClientsThatLeave) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(active(), 1U);
  pass(500ms);
  peer.reset();
  pass(3s);
  EXPECT_EQ(observed_.take(), "GET /slow 0 1 500 cut\n");
  MemoryPeer& other = connect();
  talk(other, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  other.reset();
  pass(3s);
  EXPECT_TRUE(observed_.lines.ends_with(" cut\n")) << observed_.lines;
  EXPECT_EQ(observed_.requests, 2U);
  EXPECT_EQ(active(), 0U);
}

TEST_F(ServerObserverTest, PassesOneBatchForEachTurn) {
  serve();
  std::string input;
  for (int count = 0; count < 100; ++count) input += "GET /text/a HTTP/1.1\r\nHost: a\r\n\r\n";
  talk(connect(), input);
  EXPECT_EQ(observed_.requests, 100U);
  EXPECT_GE(observed_.batches, 2U);
  EXPECT_LE(observed_.batches, 4U);
}

TEST_F(ServerObserverTest, SharesNamesOfPatternsAfterTheirRoutesAreGone) {
  const RouteName* name = nullptr;
  {
    Router other;
    other.get("/shared/{id}", [](std::string_view) { return Status::ok; });
    name = &RouteName::of("/shared/{id}");
  }
  EXPECT_EQ(name, &RouteName::of("/shared/{id}"));
  EXPECT_EQ(name->pattern, "/shared/{id}");
  EXPECT_NE(name->number, 0U);
}

class ServerObserverH2Test : public H2ConnectionFixture, public ::testing::Test {
 protected:
  ServerObserverH2Test() {
    add_routes(routes_);
    observer_ = &observed_;
  }
  std::string ask(std::uint32_t stream, std::string_view path) {
    answer(frames::get(stream, path));
    pass(3s);
    received();
    return observed_.take();
  }
  Observer observed_;
};

TEST_F(ServerObserverH2Test, RecordsStreams) {
  begin();
  EXPECT_EQ(ask(1, "/text/word"), "GET /text/{x} 200 2 0\n");
  EXPECT_EQ(ask(3, "/slow"), "GET /slow 200 2 2000\n");
  EXPECT_EQ(ask(5, "/stream"), "GET /stream 200 2 1000\n");
  EXPECT_EQ(ask(7, "/none"), "GET - 404 2 0\n");
  answer(frames::get(9, "/slow"));
  peer_->reset();
  pass(3s);
  EXPECT_EQ(observed_.take(), "GET /slow 0 2 0 cut\n");
}

}  // namespace
}  // namespace weir::http::server_observer_test
