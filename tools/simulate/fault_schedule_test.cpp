// Tests of the faults that a schedule plans, and of the connections that it excuses.
#include "tools/simulate/fault_schedule.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

#include "weir/runtime/runtime.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate::fault_schedule_test {
namespace {

using sim::Fault;
using sim::HttpConnection;
using sim::HttpTolerance;

constexpr const char* ok = "HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n";
constexpr const char* unavailable = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
constexpr const char* timed_out = "HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n";

HttpConnection connection_of(const Endpoint& local) {
  HttpConnection connection;
  connection.connected = true;
  connection.local = local;
  connection.received = ok;
  return connection;
}

class FaultScheduleTest : public testing::Test {
 protected:
  HttpTolerance tolerance(const ToleranceFunction& function, const HttpConnection& connection) {
    return function(clients_, connection);
  }

  sim::World world_{{.seed = 1}};
  sim::Host& server_ = world_.host("server");
  sim::Host& clients_ = world_.host("clients 0");
  sim::Host& others_ = world_.host("clients 1");
};

TEST_F(FaultScheduleTest, NoFaultsExcuseNoConnection) {
  const ToleranceFunction none = no_faults(world_);
  EXPECT_EQ(tolerance(none, HttpConnection()), HttpTolerance::none);
  EXPECT_EQ(tolerance(none, connection_of(clients_.address(1))), HttpTolerance::none);
}

TEST_F(FaultScheduleTest, RandomFaultsHaveOneOfTwoRates) {
  std::multiset<double> rates;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    sim::World world({.seed = seed});
    static_cast<void>(random_faults(world));
    const sim::FaultRates& planned = world.faults().rates;
    rates.insert(planned.reset);
    EXPECT_EQ(planned.half_close, planned.reset);
    EXPECT_EQ(planned.stall, planned.reset);
    EXPECT_EQ(planned.full_buffer, planned.reset);
    EXPECT_DOUBLE_EQ(planned.accept_failure, 8 * planned.reset);
    EXPECT_EQ(planned.stall_max, 10s);
  }
  EXPECT_EQ(std::set<double>(rates.begin(), rates.end()), (std::set<double>{0.005, 0.05}));
  EXPECT_NEAR(static_cast<double>(rates.count(0.05)), 20, 12);
}

TEST_F(FaultScheduleTest, AnInjectedFaultExcusesItsConnections) {
  const ToleranceFunction function = inject_fault(3, Fault::reset)(world_);
  EXPECT_EQ(world_.faults().planned_hosts(), std::vector<std::string>{"server"});
  EXPECT_EQ(world_.faults().at_operation("server", 3, world_.random()), Fault::reset);
  const HttpConnection hit = connection_of(clients_.address(1));
  world_.faults().add_injected(hit.local, server_.address(80));
  EXPECT_EQ(tolerance(function, hit), HttpTolerance::early_close);
  EXPECT_EQ(tolerance(function, connection_of(clients_.address(2))), HttpTolerance::none);
  HttpConnection refused;
  EXPECT_EQ(tolerance(function, refused), HttpTolerance::none) << "no connect had a fault";
}

TEST_F(FaultScheduleTest, AFaultOfAConnectExcusesOneConnectionWithoutData) {
  const ToleranceFunction function = inject_fault(0, Fault::reset)(world_);
  world_.faults().count_injected_connect();
  EXPECT_EQ(tolerance(function, connection_of(clients_.address(1))), HttpTolerance::none)
      << "it has received data";
  EXPECT_EQ(tolerance(function, HttpConnection()), HttpTolerance::early_close);
  EXPECT_EQ(tolerance(function, HttpConnection()), HttpTolerance::none) << "the second one";
}

TEST_F(FaultScheduleTest, APartitionExcusesTheFirstClientsOnly) {
  const ToleranceFunction function = random_partitions(world_);
  EXPECT_EQ(function(clients_, HttpConnection()), HttpTolerance::early_close);
  EXPECT_EQ(function(others_, HttpConnection()), HttpTolerance::none);
  world_.jump(1h);
  const loop::Descriptor listener = server_.listen(Endpoint::any(80), {}).value();
  const auto stream = clients_.network().open_stream();
  EXPECT_EQ(clients_.network().connect(*stream, server_.address(80)),
            MemoryNetwork::ConnectResult::established)
      << "each partition is healed";
}

TEST_F(FaultScheduleTest, ADrainExcusesConnectionsThatEndAfterIt) {
  const ToleranceFunction function = drain_early(world_);
  HttpConnection connection = connection_of(clients_.address(1));
  connection.ended_at = after(world_.now(), 2500ms);
  EXPECT_EQ(tolerance(function, connection), HttpTolerance::none) << "it was not told yet";
  world_.jump(2500ms);
  EXPECT_TRUE(server_.terminate_sent);
  EXPECT_EQ(tolerance(function, connection), HttpTolerance::orderly_close);
  connection.ended_at = after(world_.now(), -2501ms);
  EXPECT_EQ(tolerance(function, connection), HttpTolerance::none);
}

TEST_F(FaultScheduleTest, OnlyASecondSignalExcusesAnIncompleteResponse) {
  for (const int signals : {1, 2}) {
    sim::World world({.seed = 1, .jitter = sim::no_jitter});
    sim::Host& server = world.host("server");
    std::uint64_t turns = 0;
    const ToleranceFunction function = drain_at_turn(0, signals, turns)(world);
    HttpConnection before = connection_of(clients_.address(1));
    before.ended_at = after(world.now(), 1s - 1ns);
    HttpConnection connection = connection_of(clients_.address(1));
    connection.ended_at = after(world.now(), 1s);
    world.jump(1s);
    server.start([](loop::Platform& host) {
      return Runtime(host, {.announce = false}).run_on_each_core([](Scope&) -> Task<> {
        co_return;
      });
    });
    static_cast<void>(world.run_until_done(1min));
    EXPECT_EQ(tolerance(function, before), HttpTolerance::none);
    EXPECT_EQ(tolerance(function, connection),
              signals == 2 ? HttpTolerance::early_close : HttpTolerance::orderly_close);
  }
}

TEST(ToleranceByLimits, ExcusesWhatTheLimitsAllow) {
  http::Limits limits;
  limits.idle_timeout = 9s;
  limits.first_request_timeout = 7s;
  limits.linger_bytes_max = 100;
  struct {
    std::string received;
    std::size_t sent;
    Duration lasted;
    HttpTolerance expected;
  } const cases[] = {
      {"", 100, 1s - 1ns, HttpTolerance::none},
      {"", 101, 1s, HttpTolerance::early_close},
      {"", 100, 1s, HttpTolerance::early_close},
      {ok, 101, 999ms, HttpTolerance::none},
      {unavailable, 1, 1s, HttpTolerance::early_close},
      {std::string(ok) + unavailable, 1, 999ms, HttpTolerance::none},
      {timed_out, 1, 1s, HttpTolerance::early_close},
      {std::string(ok) + timed_out, 1, 1s, HttpTolerance::early_close},
      {std::string(timed_out) + ok, 1, 999ms, HttpTolerance::none},
      {"HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\nx", 1, 999ms, HttpTolerance::none},
  };
  for (const auto& each : cases) {
    HttpConnection connection;
    connection.received = each.received;
    connection.text.assign(each.sent, 'x');
    connection.started_at = Instant(5s);
    connection.ended_at = Instant(5s + each.lasted);
    EXPECT_EQ(tolerance_by_limits(limits, connection), each.expected)
        << each.received << ", " << each.sent << " bytes, " << each.lasted.count() << " ns";
  }
}

}  // namespace
}  // namespace weir::simulate::fault_schedule_test
