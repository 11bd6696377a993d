// Tests that the monitor detects a server that reads more of its clients' requests than it may.
#include "tools/simulate/request_monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tools/simulate/scenarios.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate::request_monitor_test {
namespace {

constexpr std::size_t request_bytes = 4096;
constexpr std::size_t requests = 64;

/// The amount that a server reads before it responds.
struct Taking {
  std::size_t requests_at_once = 1;  ///< requests in progress at the same time
  std::size_t bytes_at_once = request_bytes;
};

Task<> serve_one(tcp::Stream peer, RequestMonitor& watch, Taking taking) {
  const Endpoint client = peer.peer_address();
  for (std::size_t taken = 0; taken < request_bytes * requests;) {
    const std::size_t end = taken + taking.bytes_at_once;
    while (taken < end) {
      std::array<std::byte, 512> room;
      const auto count = co_await peer.read_into(room);
      if (!count) co_return;
      taken += *count;
    }
    {
      const RequestMonitor::ActiveRequest working(watch, client);
      std::optional<RequestMonitor::ActiveRequest> another;
      if (taking.requests_at_once > 1) another.emplace(watch, client);
      std::ignore = co_await sleep(std::chrono::milliseconds(10));
    }
    const auto written = co_await peer.write("done");
    if (!written) co_return;
  }
}

Task<Result<>> serve_all(Scope& scope, RequestMonitor& watch, Taking taking) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    scope.spawn(serve_one(std::move(peer), watch, taking));
  }
}

/// Returns the violation of a server that reads like this.
std::string violation_of(const Taking& taking) {
  sim::World world(fresh_world_options());
  RequestMonitor watch(read_ahead_max(small_limits()),
                       [](const Endpoint&, std::size_t begun) { return begun * request_bytes; });
  sim::Host& server = world.host("server", {.cores = 2});
  server.start([&](loop::Platform& host) {
    return Runtime(host, {.cores = 2, .announce = false})
        .run_on_each_core(serve_all, std::ref(watch), taking);
  });
  std::string violation;
  world.always("requests", [&] { return violation = watch.find_violation(server); });
  sim::Host& clients = world.host("clients");
  std::optional<sim::Peer> peer;
  world.schedule(std::chrono::seconds(1), [&] {
    peer.emplace(clients, server.address(80));
    peer->send(std::string(request_bytes * requests, 'r'));
  });
  world.schedule(std::chrono::seconds(60), [&] { server.raise(loop::Signal::terminate); });
  const sim::WorldReport report = world.run_until_done(std::chrono::hours(1));
  EXPECT_EQ(report.ok(), violation.empty()) << report.text();
  return violation;
}

TEST(RequestMonitor, AcceptsAServerThatReadsOneRequestAtATime) {
  EXPECT_EQ(violation_of({}), "");
}

TEST(RequestMonitor, DetectsAServerThatReadsTooMuch) {
  const std::string violation = violation_of({.bytes_at_once = 16 * request_bytes});
  EXPECT_TRUE(violation.ends_with(" requests")) << violation;
}

TEST(RequestMonitor, DetectsSeveralRequestsInProgressOnAConnection) {
  const std::string violation = violation_of({.requests_at_once = 2});
  EXPECT_TRUE(violation.starts_with("2 requests of 10.0.0.2:")) << violation;
}

// Shows that the bound is not so large that it always holds.
TEST(RequestMonitor, TheHttpServerUsesMostOfItsReadAhead) {
  const HttpRun run{.connections = 12, .watched = true};
  const std::size_t options = read_ahead_max(run.limits) / 2;
  std::size_t most = 0;
  // About every second run reaches this amount.
  for (int runs = 0; runs < 100 && most <= options; ++runs) {
    const Outcome outcome = run_http(fresh_world_options(), run);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    most = std::max(most, outcome.read_ahead_max_seen);
  }
  EXPECT_GT(most, options);
}

}  // namespace
}  // namespace weir::simulate::request_monitor_test
