// Tests that each log record of an HTTP request has the request's id, whichever task writes it.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::request_logs_test {
namespace {

/// Takes request ids from a header, and stores all log records in memory.
class LogServiceRequestsTest : public HttpTest {
 protected:
  LogServiceRequestsTest() : logs_(platform_, LogOptions(), one_sink<MemorySink>(stored_)) {
    routes_.trust_id_header("Id");
  }
  /// Sends a request with that id.
  MemoryPeer& ask(std::string_view path, std::string_view id) {
    MemoryPeer& peer = connect();
    talk(peer, "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nId: " + std::string(id) +
                   "\r\n\r\n");
    return peer;
  }
  /// Returns the number of records for each request id; "" for records without one.
  std::map<std::string, int> by_request() {
    logs_.flush();
    std::map<std::string, int> count;
    for (const StoredRecord& each : stored_.records) {
      const std::size_t at = each.text.find(" request=");
      ++count[at == std::string::npos ? "" : each.text.substr(at + 9)];
    }
    return count;
  }
  using Count = std::map<std::string, int>;

  StoredLog stored_;
  LogService logs_;
  Logger log_ = logs_.logger("test");
};

TEST_F(LogServiceRequestsTest, RecordsOfAHandlerThatDoesNotWaitHaveTheId) {
  routes_.get("/", [this] {
    log_.info("now");
    return http::text("now");
  });
  serve();
  log_.info("before");
  ask("/", "a");
  ask("/", "b");
  log_.info("after");
  EXPECT_EQ(by_request(), (Count{{"", 2}, {"a", 1}, {"b", 1}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfAwaitedTasksHaveTheId) {
  const auto inner = [this]() -> Task<Result<>> {
    log_.info("inner");
    std::ignore = co_await sleep(1s);
    log_.info("inner, later");
    co_return {};
  };
  const auto handler = [this, inner]() -> Task<http::Response> {
    log_.info("outer");
    co_await yield();
    log_.info("after a yield");
    std::ignore = co_await timeout(10s, inner());
    log_.info("after a timeout that did not pass");
    std::ignore = co_await timeout(10ms, inner());
    log_.info("after one that did");
    std::ignore = co_await all(inner(), inner());
    log_.info("after several");
    co_return http::text("done");
  };
  routes_.get("/", handler);
  serve();
  ask("/", "a");
  pass(500ms);
  ask("/", "b");
  pass(10s);
  EXPECT_EQ(by_request(), (Count{{"a", 13}, {"b", 13}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfSpawnedTasksHaveTheId) {
  const auto child = [this](int times) -> Task<> {
    for (; times > 0; --times) {
      log_.info("child");
      std::ignore = co_await sleep(1s);
    }
  };
  routes_.get("/", [this, child](Scope& scope) -> Task<http::Response> {
    scope.spawn(child(3));
    log_.info("handler");
    scope.spawn(child(2));
    co_await yield();
    log_.info("handler");
    co_return http::text("done");
  });
  serve();
  ask("/", "a");
  ask("/", "b");
  pass(10s);
  EXPECT_EQ(by_request(), (Count{{"a", 7}, {"b", 7}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfAStreamedBodyHaveTheId) {
  const auto body = [this](http::BodySink& sink) -> Task<Result<>> {
    log_.info("begins");
    std::ignore = co_await sleep(1s);
    log_.info("goes on");
    co_return co_await sink.write(to_bytes("piece"));
  };
  routes_.get("/", [body] { return http::stream("text/plain", body); });
  serve();
  ask("/", "a");
  pass(10s);
  EXPECT_EQ(by_request(), (Count{{"a", 2}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfAHandlerThatWaitsForTheBodyHaveTheId) {
  routes_.post("/", [this](http::Request& request) -> Task<http::Response> {
    const auto body = co_await request.body();
    log_.info("read");
    co_return http::text(body.value_or("cut"));
  });
  routes_.post("/ignored", [this] {
    log_.info("not read");
    return http::text("ignored");
  });
  serve();
  for (const std::string path : {"/", "/ignored"}) {
    MemoryPeer& peer = connect();
    talk(peer, "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nId: a\r\n\r\nbo");
    ask("/nowhere", "b");
    talk(peer, "dy");
  }
  EXPECT_EQ(by_request(), (Count{{"a", 2}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfABackgroundTaskHaveNoId) {
  ManualResetEvent asked;
  const auto background = [&]() -> Task<> {
    std::ignore = co_await asked.wait();
    log_.info("background");
  };
  std::optional<Scope> scope;
  routes_.get("/", [&]() -> Task<http::Response> {
    scope->spawn(background());
    asked.set();
    log_.info("handler");
    co_await yield();
    co_await yield();
    log_.info("handler");
    co_return http::text("done");
  });
  serve();
  scope.emplace(Context{loop_.get(), nullptr}, OnFailure::isolate);
  ask("/", "a");
  settle();
  scope.reset();
  EXPECT_EQ(by_request(), (Count{{"", 1}, {"a", 2}}));
}

TEST_F(LogServiceRequestsTest, RecordsOfPoolJobsHaveTheId) {
  BlockingPool pool(platform_);
  routes_.get("/", [&]() -> Task<http::Response> {
    const auto work = [this] { log_.info("in the pool"); };
    const auto ran = co_await pool.run(work);
    log_.info("behind it");
    co_return ran ? http::text("done") : http::Response(http::Status::service_unavailable);
  });
  serve();
  ask("/", "a");
  ask("/", "b");
  pass(1s);
  EXPECT_EQ(by_request(), (Count{{"a", 2}, {"b", 2}}));
}

TEST_F(LogServiceRequestsTest, AnExplicitRequestFieldIsKept) {
  routes_.get("/", [this] {
    log_.info("by hand", field("request", "mine"));
    log_.with(field("x", 1), field("request", "bound")).info("by hand");
    log_.with(field("x", 1)).info("automatically");
    return http::text("now");
  });
  serve();
  ask("/", "a");
  EXPECT_EQ(by_request(), (Count{{"mine", 1}, {"bound", 1}, {"a x=1", 1}}));
}

}  // namespace
}  // namespace weir::request_logs_test
