#include "weir/sim/http/http_traffic.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir {
namespace {

Task<Result<>> closes_at_once(tcp::Stream) {
  co_return {};
}

constexpr std::string_view not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// Knows no resource, and says so behind each head, and perhaps once more.
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
  auto listener = co_await tcp::listen(Endpoint::any(80));
  if (!listener) co_return fail(listener.error());
  for (;;) {
    auto peer = co_await listener->accept();
    if (!peer) co_return fail(peer.error());
    peers.spawn(one(std::move(*peer)));
  }
}

/// One connection of a client with one request, to a server that does so.
struct Served {
  std::string fault;
  std::string excused;
};
Served served_by(Serve one) {
  World world(fresh_world());
  WorldHost& server = world.host("server");
  server.start_service(
      [one](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve, one); });
  HttpTraffic traffic({.server = server.address(80), .connections = 1, .requests_max = 1});
  world.host("client").start([&traffic](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  const auto excuse = [](const HttpTalk&) { return HttpExcuse::ended_early; };
  return {traffic.find_fault(), traffic.find_fault(excuse)};
}

/// In how many of 200 runs there was this fault, in spite of an excuse or not.
struct Found {
  int without_excuse = 0;
  int with_excuse = 0;
};
Found count(Serve one, const std::string& fault) {
  Found found;
  for (int run = 0; run < 200; ++run) {
    const Served served = served_by(one);
    if (served.fault.contains(fault)) ++found.without_excuse;
    if (served.excused.contains(fault)) ++found.with_excuse;
  }
  return found;
}

// Some clients leave before they could see it.
TEST(HttpTraffic, FindsThatTheLastAnswerComesTwice) {
  const Found found = count(answers_twice, "more answers than requests");
  EXPECT_GT(found.without_excuse, 1) << "one in eight asks for what is missing";
  EXPECT_EQ(count(answers_once, "more answers than requests").without_excuse, 0);
}

TEST(HttpTraffic, FindsThatNobodyIsAnswered) {
  const Found found = count(closes_at_once, "answered 0 of 1 requests, then ");
  EXPECT_GT(found.without_excuse, 150);
  EXPECT_EQ(found.with_excuse, 0);
}

}  // namespace
}  // namespace weir
