// What a server may take of its clients' requests is watched, and one that takes more is found out.
#include "tools/simulate/request_monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tools/simulate/scenarios.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/peer.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t request_bytes = 4096;
constexpr std::size_t requests = 64;

/// What a server takes before it answers.
struct Taking {
  std::size_t requests_at_once = 1;  ///< that it works on
  std::size_t bytes_at_once = request_bytes;
};

Task<> serve_one(tcp::Stream peer, RequestWatch& watch, Taking taking) {
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
      const RequestWatch::Working working(watch, client);
      std::optional<RequestWatch::Working> another;
      if (taking.requests_at_once > 1) another.emplace(watch, client);
      static_cast<void>(co_await sleep(std::chrono::milliseconds(10)));
    }
    const auto written = co_await peer.write("done");
    if (!written) co_return;
  }
}

Task<Result<>> serve_all(Scope& scope, RequestWatch& watch, Taking taking) {
  auto listener = co_await tcp::listen(Endpoint::any(80));
  if (!listener) co_return fail(listener.error());
  for (;;) {
    auto peer = co_await listener->accept();
    if (!peer) co_return fail(peer.error());
    scope.spawn(serve_one(std::move(*peer), watch, taking));
  }
}

/// What the watch says of a server that does so.
std::string fault_of(const Taking& taking) {
  World world(fresh_world());
  RequestWatch watch(ahead_max(small_limits()),
                     [](const Endpoint&, std::size_t begun) { return begun * request_bytes; });
  WorldHost& server = world.host("server", {.cores = 2});
  server.start([&](Host& host) {
    return Runtime(host, {.cores = 2, .announce = false})
        .run_on_each_core(serve_all, std::ref(watch), taking);
  });
  std::string fault;
  world.always("requests", [&] { return fault = watch.find_fault(server); });
  WorldHost& clients = world.host("clients");
  std::optional<WorldPeer> peer;
  world.at(std::chrono::seconds(1), [&] {
    peer.emplace(clients, server.address(80));
    peer->send(std::string(request_bytes * requests, 'r'));
  });
  world.at(std::chrono::seconds(60), [&] { server.raise(Signal::terminate); });
  const WorldReport report = world.run_until_done(std::chrono::hours(1));
  EXPECT_EQ(report.ok(), fault.empty()) << report.text();
  return fault;
}

TEST(RequestWatch, LetsAServerTakeOneRequestAfterTheOther) {
  EXPECT_EQ(fault_of({}), "");
}

TEST(RequestWatch, FindsAServerThatReadsAllThatComes) {
  const std::string fault = fault_of({.bytes_at_once = 16 * request_bytes});
  EXPECT_TRUE(fault.ends_with(" requests")) << fault;
}

TEST(RequestWatch, FindsAServerThatWorksOnSeveralRequestsOfAConnection) {
  const std::string fault = fault_of({.requests_at_once = 2});
  EXPECT_TRUE(fault.starts_with("2 requests of 10.0.0.2:")) << fault;
}

// Otherwise the bound would be one that always holds.
TEST(RequestWatch, TheHttpServerUsesMostOfWhatItMayBuffer) {
  const HttpRun run{.connections = 12, .watched = true};
  const std::size_t wanted = ahead_max(run.limits) / 2;
  std::size_t most = 0;
  // About every second run comes to that much.
  for (int runs = 0; runs < 100 && most <= wanted; ++runs) {
    const Outcome outcome = run_http(fresh_world(), run);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    most = std::max(most, outcome.ahead_most);
  }
  EXPECT_GT(most, wanted);
}

}  // namespace
}  // namespace weir::simulate
