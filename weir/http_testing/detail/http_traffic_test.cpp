// Tests of HttpTraffic: it finds the faults of a server.
#include "weir/http_testing/detail/http_traffic.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim::http_traffic_test {
namespace {

Task<Result<>> close_immediately(tcp::Stream) {
  co_return {};
}

constexpr std::string_view not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// Answers each request head with 404, and a second time if `twice` is set.
Task<Result<>> answers(tcp::Stream peer, bool twice) {
  std::string heads;
  for (std::size_t read = 0;;) {
    const auto bytes = co_await peer.read();
    if (!bytes) co_return {};
    heads += bytes->text();
    for (std::size_t end = 0; (end = heads.find("\r\n\r\n", read)) != heads.npos; read = end + 4) {
      if (auto written = co_await peer.write(not_found); !written) co_return {};
      if (!twice) continue;
      if (auto slept = co_await sleep(5ms); !slept) co_return slept;
      if (auto written = co_await peer.write(not_found); !written) co_return {};
    }
  }
}
Task<Result<>> answers_once(tcp::Stream peer) {
  return answers(std::move(peer), false);
}
Task<Result<>> answers_twice(tcp::Stream peer) {
  return answers(std::move(peer), true);
}

using Serve = Task<Result<>> (*)(tcp::Stream);

Task<Result<>> serve(Scope& peers, Serve one) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    peers.spawn(one(std::move(peer)));
  }
}

/// The violations of one connection with one request to a server, without and with a tolerance.
struct Served {
  std::string violation;
  std::string excused;
};
Served served_by(Serve one) {
  World world(fresh_world_options());
  Host& server = world.host("server");
  server.start_service(
      [one](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve, one); });
  HttpTraffic traffic({.server = server.address(80), .connections = 1, .requests_max = 1});
  world.host("client").start([&traffic](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  const auto tolerance = [](const HttpConnection&) { return HttpTolerance::early_close; };
  return {traffic.find_violation(), traffic.find_violation(tolerance)};
}

/// The number of runs, of 200, in which this violation was found, without and with a tolerance.
struct Found {
  int without_excuse = 0;
  int with_excuse = 0;
};
Found count(Serve one, const std::string& violation) {
  Found found;
  for (int run = 0; run < 200; ++run) {
    const Served served = served_by(one);
    if (served.violation.contains(violation)) ++found.without_excuse;
    if (served.excused.contains(violation)) ++found.with_excuse;
  }
  return found;
}

// Some clients close before they can see it.
TEST(HttpTraffic, FindsADuplicateOfTheLastResponse) {
  const Found found = count(answers_twice, "more answers than requests");
  EXPECT_GT(found.without_excuse, 1) << "one request in eight is for a missing resource";
  EXPECT_EQ(count(answers_once, "more answers than requests").without_excuse, 0);
}

TEST(HttpTraffic, FindsMissingResponses) {
  const Found found = count(close_immediately, "answered 0 of 1 requests, then ");
  EXPECT_GT(found.without_excuse, 150);
  EXPECT_EQ(found.with_excuse, 0);
}

}  // namespace
}  // namespace weir::sim::http_traffic_test
