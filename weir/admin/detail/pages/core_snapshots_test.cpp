// Tests of the snapshot of a core: its contents, and its limits.
#include "weir/admin/detail/pages/core_snapshots.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/test/client_fixture.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"

namespace weir::admin::core_snapshots_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

Task<http::Response> wait_an_hour() {
  std::ignore = co_await sleep(1h);
  co_return http::text("late\n");
}

class CoreSnapshotTest : public HttpTest {
 protected:
  CoreSnapshotTest() {
    routes_.get("/", [] { return http::text("hello\n"); });
    routes_.get("/wait/{id}", [](int) { return wait_an_hour(); });
  }
  ConnectionReport only_connection() {
    const CoreSnapshot snapshot = make_snapshot(*loop_);
    EXPECT_EQ(snapshot.servers.size(), 1U);
    EXPECT_EQ(snapshot.servers.at(0).connections.size(), 1U);
    return snapshot.servers.at(0).connections.at(0);
  }
};

TEST_F(CoreSnapshotTest, HasTheAgeAndTheBytesOfAConnection) {
  serve();
  pass(10s);
  MemoryPeer& peer = connect();
  settle();
  EXPECT_EQ(only_connection().state, "new");
  pass(2s);
  const std::string answer = talk(peer, get);
  pass(5s);
  const ConnectionReport report = only_connection();
  EXPECT_EQ(report.state, "idle");
  EXPECT_EQ(report.received, get.size());
  EXPECT_EQ(report.sent, answer.size());
  EXPECT_GE(report.age, 7s - 140ms);
  EXPECT_LE(report.age, 7s + 140ms);
  EXPECT_EQ(report.waits, 5s);
  EXPECT_EQ(report.protocol, "HTTP/1.1");
  talk(peer, "GET /wait/1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const ConnectionReport running = only_connection();
  EXPECT_EQ(running.state, "runs handler");
  EXPECT_EQ(running.route, "GET /wait/{id}");
  EXPECT_FALSE(running.unanswered) << "the time is kept for observers only";
  stop();
}

TEST_F(CoreSnapshotTest, ReadsAtMostItsLimitOfItems) {
  serve();
  for (int i = 0; i < 200; ++i) {
    connect();
    settle();
  }
  const CoreSnapshot whole = make_snapshot(*loop_, {.items_max = 1000});
  EXPECT_EQ(whole.servers.at(0).connections.size(), 200U);
  const CoreSnapshot cut = make_snapshot(*loop_, {.items_max = 51});
  EXPECT_EQ(cut.servers.at(0).open, 200U);
  EXPECT_EQ(cut.servers.at(0).connections.size(), 50U) << "the server is an item too";
  for (int i = 0; i < 40; ++i) {
    ConnectTargets::on_opened(*loop_, "http://store" + std::to_string(i));
  }
  const CoreSnapshot shared = make_snapshot(*loop_, {.items_max = 51});
  EXPECT_EQ(shared.targets.size(), 25U) << "a half is for the servers";
  EXPECT_EQ(shared.servers.at(0).connections.size(), 25U) << "one limit holds for the whole";
  EXPECT_TRUE(make_snapshot(*loop_, {.items_max = 0}).servers.empty());
}

TEST_F(CoreSnapshotTest, EndsWhenItsTimeIsOver) {
  SnapshotBudget budget(platform_, {.items_max = 1000, .time_max = 80us});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(budget.take());
  pass(81us);
  int more = 0;
  while (budget.take()) ++more;
  EXPECT_LT(more, 8);
  SnapshotBudget divided(platform_, {.items_max = 100, .time_max = 80us});
  divided.begin_part(2);
  int first = 0;
  while (divided.take()) ++first;
  EXPECT_EQ(first, 50);
  divided.begin_part(1);
  int second = 0;
  while (divided.take()) ++second;
  EXPECT_EQ(second, 50);
}

TEST_F(CoreSnapshotTest, AServerWithManyConnectionsLeavesTimeForOthers) {
  serve();
  for (int i = 0; i < 50; ++i) connect();
  settle();
  http::ServerState other(*loop_, routes_, {});
  const CoreSnapshot snapshot = make_snapshot(*loop_, {.items_max = 42});
  ASSERT_EQ(snapshot.servers.size(), 2U);
  EXPECT_EQ(snapshot.servers[0].connections.size(), 20U);
}

class H2SnapshotTest : public http::H2ConnectionFixture, public testing::Test {};

TEST_F(H2SnapshotTest, HasTheRoutesOfSomeStreams) {
  routes_.get("/wait/{id}", [](int) { return wait_an_hour(); });
  begin();
  for (std::uint32_t stream = 1; stream <= 9; stream += 2) {
    answer(http::frames::get(stream, "/wait/1"));
  }
  const CoreSnapshot snapshot = make_snapshot(*loop_);
  ASSERT_EQ(snapshot.servers.at(0).connections.size(), 1U);
  const ConnectionReport& report = snapshot.servers[0].connections[0];
  EXPECT_EQ(report.streams, 5U);
  EXPECT_EQ(report.route, "GET /wait/{id}, GET /wait/{id}, GET /wait/{id}, 2 more");
  EXPECT_GT(report.received, 100U);
  EXPECT_GT(report.sent, 20U);
  stop();
}

class TargetSnapshotTest : public http::ClientFixture {};

TEST_F(TargetSnapshotTest, HasTheConnectionsOfClients) {
  http::ClientOptions options;
  options.limits.connections_per_origin_max = 1;
  options.limits.head_timeout = 2s;
  const std::vector<http::Step> silent{{.answer = "", .pause = 1h}};
  with_server({silent}, std::move(options), [this](http::Client& client) -> Task<> {
    const auto look = [this]() -> Task<bool> {
      co_await wait(1s);
      const CoreSnapshot during = make_snapshot(*loop_);
      EXPECT_EQ(during.uses.size(), 1U);
      if (during.uses.empty()) co_return false;
      EXPECT_EQ(during.uses[0].origin, "http://127.0.0.1:81");
      EXPECT_EQ(during.uses[0].open, 1U);
      EXPECT_EQ(during.uses[0].idle, 0U);
      EXPECT_EQ(during.uses[0].waiting, 1U);
      EXPECT_TRUE(during.uses[0].is_full);
      co_return true;
    };
    const auto done = co_await all(http::ask(client), http::ask(client), look());
    EXPECT_TRUE(done);
    const CoreSnapshot later = make_snapshot(*loop_);
    EXPECT_EQ(later.targets.size(), 1U);
    if (later.targets.empty()) co_return;
    EXPECT_EQ(later.targets[0].origin, "http://127.0.0.1:81");
    EXPECT_EQ(later.targets[0].requests_failed, 1U) << "the answer did not come";
    EXPECT_EQ(later.targets[0].failed, 0U);
    EXPECT_EQ(later.targets[0].opened, 2U);
    EXPECT_EQ(later.uses.size(), 1U);
    EXPECT_EQ(later.uses[0].idle, 1U);
    EXPECT_FALSE(later.uses[0].is_full);
  });
}

class SnapshotsTest : public HttpTest {};

TEST_F(SnapshotsTest, AreMadeForEachQuestion) {
  serve();
  connect();
  settle();
  const auto look = [this](std::size_t expected) -> Task<> {
    const auto answers = co_await CoreSnapshots::of(*loop_).collect();
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_TRUE(answers.at(0).answered);
    EXPECT_EQ(answers.at(0).snapshot->servers.at(0).open, expected);
  };
  weir::run(*loop_, look(1));
  connect();
  settle();
  weir::run(*loop_, look(2));
}

}  // namespace
}  // namespace weir::admin::core_snapshots_test
