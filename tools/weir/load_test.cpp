// Tests of the load generator against servers in virtual time.
#include "tools/weir/load.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/http.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/tls/server.hpp"

namespace weir::bench::load_test {
namespace {

constexpr std::string_view hello_response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view hello_closing =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

const Endpoint endpoint = Endpoint::loopback(8080);

/// Serves one connection in the way that a test needs.
using Behaviour = Task<> (*)(tcp::Stream stream);

Task<> answer_each(tcp::Stream stream) {
  while (const auto request = co_await stream.read()) {
    const auto written = co_await stream.write(hello_response);
    if (!written) co_return;
  }
}

Task<> serve_raw(Scope& scope, Behaviour behaviour) {
  auto listener = co_await tcp::listen(endpoint);
  if (!listener) co_return;
  for (;;) {
    auto stream = co_await listener->accept();
    if (!stream) co_return;
    scope.spawn(behaviour(std::move(*stream)));
  }
}

Task<LoadResult> load_on_raw(Scope& scope, Behaviour behaviour, LoadPlan plan) {
  scope.spawn(serve_raw(scope, behaviour));
  LoadResult result = co_await generate_load(std::move(plan));
  scope.cancel();
  co_return result;
}

Task<LoadResult> load_on_router(Scope& scope, const http::Router& router, LoadPlan plan) {
  http::ServeOptions options{.endpoint = endpoint};
  if (plan.tls != nullptr) {
    tls::ServerOptions secure;
    secure.self_signed.emplace();
    options.tls = std::make_shared<tls::Server>(std::move(secure));
    const auto loaded = co_await options.tls->load();  // the listener waits for it
    EXPECT_TRUE(loaded) << loaded.error().text();
  }
  scope.spawn(http::serve(scope, router, std::move(options)));
  LoadResult result = co_await generate_load(std::move(plan));
  scope.cancel();
  co_return result;
}

Task<LoadResult> raw(Behaviour behaviour, LoadPlan plan) {
  auto result = co_await with_scope(load_on_raw, behaviour, std::move(plan));
  co_return std::move(*result);
}

Task<LoadResult> routed(const http::Router& router, LoadPlan plan) {
  auto result = co_await with_scope(load_on_router, std::cref(router), std::move(plan));
  co_return std::move(*result);
}

LoadPlan plan_of(unsigned connections, std::optional<std::uint64_t> requests) {
  LoadPlan plan;
  plan.endpoint = endpoint;
  plan.request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  plan.connections = connections;
  plan.requests = requests;
  return plan;
}

/// Runs everything, including the server, in virtual time on one loop.
class Load : public LoopTest {
 protected:
  LoadResult on_raw(Behaviour behaviour, LoadPlan plan) {
    return run_made(raw, behaviour, std::move(plan));
  }
  LoadResult on_router(const http::Router& router, LoadPlan plan) {
    return run_made([&router](LoadPlan own) { return routed(router, std::move(own)); },
                    std::move(plan));
  }
};

TEST_F(Load, CountsEveryResponseOfWeirsOwnServer) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello\n"); });
  for (const unsigned depth : {1U, 3U, 64U}) {
    LoadPlan plan = plan_of(8, 1001);
    plan.depth = depth;
    const LoadResult result = on_router(routes, plan);
    EXPECT_EQ(result.responses, 1001U);
    EXPECT_EQ(result.latency.count(), 1001U);
    EXPECT_EQ(result.connections, 8U);
    EXPECT_EQ(result.body_bytes, 6U);
    EXPECT_EQ(result.unanswered, 0U);
    EXPECT_EQ(result.errors.total(), 0U);
  }
}

TEST_F(Load, SendsBodiesAndReadsChunkedOnes) {
  http::Router routes;
  routes.post("/", [](http::Request& request) -> Task<http::Response> {
    auto body = co_await request.body_view();
    if (!body || *body != "ping") co_return http::Status::bad_request;
    co_return http::text("pong");
  });
  LoadPlan plan = plan_of(2, 20);
  plan.request =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4\r\nping\r\n0\r\n\r\n";
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses, 20U);
  EXPECT_EQ(result.errors.total(), 0U);
}

TEST_F(Load, OpensOneConnectionPerRequestIfConfigured) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello\n"); });
  LoadPlan plan = plan_of(4, 50);
  plan.new_connections = true;
  plan.request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses, 50U);
  EXPECT_EQ(result.connections, 50U);
  EXPECT_EQ(result.errors.total(), 0U);
}

TEST_F(Load, OpensOneConnectionPerRequestAtAFixedRateToo) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello\n"); });
  LoadPlan plan = plan_of(4, std::nullopt);
  plan.new_connections = true;
  plan.rate = 100;
  plan.length = 500ms;
  plan.request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses + result.late, 50U);
  EXPECT_EQ(result.connections, 50U);
  EXPECT_EQ(result.errors.total(), 0U);

  plan.requests = 3;
  const LoadResult refused = run_made(generate_load, plan);
  EXPECT_EQ(refused.unanswered, 3U) << "each counts once";
}

TEST_F(Load, CountsHandshakesAndResumedSessions) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello\n"); });
  for (const bool resume : {false, true}) {
    for (const TlsVersion version : {TlsVersion::tls_1_2, TlsVersion::tls_1_3}) {
      tls::ClientOptions options{.trust = {}, .verification = tls::Verification::none};
      options.version_max = version;
      options.tickets = resume;
      tls::Client client(options);
      LoadPlan plan = plan_of(4, 50);
      plan.tls = &client;
      plan.tls_host = "a.test";
      plan.new_connections = true;
      plan.resume = resume;
      plan.request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      const LoadResult result = on_router(routes, plan);
      EXPECT_EQ(result.responses, 50U);
      EXPECT_EQ(result.handshakes, 50U);
      EXPECT_EQ(result.resumed, resume ? 46U : 0U) << "the first of each connection is full";
      EXPECT_EQ(result.errors.total(), 0U);
    }
  }
}

TEST_F(Load, AFailedHandshakeIsAnError) {
  tls::Client client({.trust = {}, .verification = tls::Verification::none});
  LoadPlan plan = plan_of(1, 2);
  plan.tls = &client;
  plan.tls_host = "a.test";
  const LoadResult result = on_raw(answer_each, plan);
  EXPECT_EQ(result.errors.of(LoadError::handshake), 2U);
  EXPECT_EQ(result.unanswered, 2U);
  EXPECT_EQ(result.handshakes, 0U);
}

TEST_F(Load, AWrongStatusIsAnError) {
  const http::Router routes;
  const LoadResult result = on_router(routes, plan_of(1, 3));
  EXPECT_EQ(result.responses, 0U);
  EXPECT_EQ(result.errors.of(ResponseError::status), 3U);
  EXPECT_EQ(result.unanswered, 0U) << "each counts once";
}

TEST_F(Load, CountsRefusedConnections) {
  const LoadResult result = run_made(generate_load, plan_of(2, 10));
  EXPECT_EQ(result.responses, 0U);
  EXPECT_EQ(result.unanswered, 10U);
  EXPECT_EQ(result.errors.of(LoadError::refused), 10U);
}

TEST_F(Load, AnUnannouncedCloseIsAnError) {
  const Behaviour abrupt = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_response);
  };
  const LoadResult abruptly = on_raw(abrupt, plan_of(1, 5));
  EXPECT_GE(abruptly.errors.of(LoadError::ended) + abruptly.errors.of(LoadError::reset), 2U);
  EXPECT_EQ(abruptly.responses + abruptly.unanswered, 5U);

  const Behaviour polite = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_closing);
  };
  const LoadResult politely = on_raw(polite, plan_of(1, 5));
  EXPECT_EQ(politely.errors.total(), 0U);
  EXPECT_EQ(politely.responses, 5U);
  EXPECT_EQ(politely.closed_by_server, 5U);
  EXPECT_EQ(politely.connections, 5U);
}

TEST_F(Load, DetectsAMissingClose) {
  const Behaviour keeping = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_response);
    std::ignore = co_await stream.read();
  };
  LoadPlan plan = plan_of(1, 2);
  plan.new_connections = true;
  const LoadResult result = on_raw(keeping, plan);
  EXPECT_EQ(result.responses, 2U);
  EXPECT_EQ(result.errors.of(LoadError::not_closed), 2U);
}

TEST_F(Load, SilenceTimesOut) {
  const Behaviour silent = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
    }
  };
  LoadPlan plan = plan_of(3, 6);
  plan.timeout = 2s;
  const LoadResult result = on_raw(silent, plan);
  EXPECT_EQ(result.responses, 0U);
  EXPECT_EQ(result.errors.of(LoadError::timed_out), 6U);
  EXPECT_EQ(result.unanswered, 6U);
  EXPECT_GE(elapsed(), 4s);
  EXPECT_LE(elapsed(), 6s);
}

TEST_F(Load, DetectsMoreResponsesThanRequests) {
  const Behaviour generous = [](tcp::Stream stream) -> Task<> {
    const std::string twice = std::string(hello_response) + std::string(hello_response);
    while (co_await stream.read()) {
      if (!co_await stream.write(twice)) co_return;
    }
  };
  const LoadResult result = on_raw(generous, plan_of(1, 2));
  EXPECT_EQ(result.errors.of(ResponseError::unexpected), 2U);
}

TEST_F(Load, FixedRateSendsRequestsWhenTheyAreDue) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello\n"); });
  LoadPlan plan = plan_of(10, std::nullopt);
  plan.rate = 1000;
  plan.length = 2s;
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses + result.late, 2000U);
  EXPECT_EQ(result.unsent, 0U);
  EXPECT_EQ(result.length, 2s);
  EXPECT_EQ(result.errors.total(), 0U);
  EXPECT_EQ(result.latency.max(), 0U) << "nothing takes time here";
}

TEST_F(Load, AFixedRateSpreadsItsConnectionsEvenly) {
  std::vector<Duration> arrivals;
  http::Router routes;
  routes.get("/", [this, &arrivals] {
    arrivals.push_back(elapsed());
    return http::text("Hello\n");
  });
  LoadPlan plan = plan_of(4, std::nullopt);
  plan.rate = 4;
  plan.length = 2s;
  on_router(routes, plan);
  EXPECT_EQ(arrivals,
            (std::vector<Duration>{0ms, 250ms, 500ms, 750ms, 1000ms, 1250ms, 1500ms, 1750ms}));
}

TEST_F(Load, AStallDelaysEveryRequestThatIsDueMeanwhile) {
  // One connection sends one request every 10 ms, and the 11th response takes 100 ms. The
  // requests that are due meanwhile have waited 90, 80, ... 10 ms when they are answered.
  int count = 0;
  http::Router routes;
  routes.get("/", [&count]() -> Task<http::Response> {
    if (++count == 11) std::ignore = co_await sleep(100ms);
    co_return http::text("Hello\n");
  });
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 100;
  plan.length = 1s;
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses + result.late, 100U);
  EXPECT_EQ(result.latency.max(), 100'000'000U);
  EXPECT_NEAR(result.latency.mean() * 100, 550e6, 1e6);
}

TEST_F(Load, ReportsUnsentRequests) {
  http::Router routes;
  routes.get("/", []() -> Task<http::Response> {
    std::ignore = co_await sleep(100ms);
    co_return http::text("Hello\n");
  });
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 100;
  plan.length = 1s;
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(result.responses + result.late, 10U);
  EXPECT_EQ(result.unsent, 90U);
  // Each counts with the time since it was due: 900, 890, ... 10 ms.
  EXPECT_EQ(result.latency.count(), 100U);
  EXPECT_NEAR(result.latency.mean() * 100, 90 * 455e6 + 10 * 505e6, 1e6);
}

TEST_F(Load, FixedRateLatencyIncludesUnansweredRequests) {
  const Behaviour silent = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
    }
  };
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 1;
  plan.length = 1s;
  plan.timeout = 5s;
  const LoadResult result = on_raw(silent, plan);
  EXPECT_EQ(result.responses + result.late, 0U);
  EXPECT_EQ(result.unanswered, 1U);
  EXPECT_EQ(result.errors.of(LoadError::timed_out), 1U);
  EXPECT_EQ(result.latency.count(), 1U);
  EXPECT_GE(result.latency.max(), 5'000'000'000U);
}

TEST_F(Load, KeepsARateOfMoreThanOneRequestPerNanosecond) {
  // More than one request is due per nanosecond. The result reports those that cannot be sent.
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 3e9;
  plan.length = 10us;
  const Behaviour slow = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
      std::ignore = co_await sleep(1us);
      if (!co_await stream.write(hello_response)) co_return;
    }
  };
  const LoadResult result = on_raw(slow, plan);
  EXPECT_GT(result.unsent, 0U);
  EXPECT_EQ(result.responses + result.late + result.unsent, 10'000U);
  EXPECT_EQ(result.latency.count(), 10'000U);
}

LoadPlan numbered_plan(unsigned connections, std::uint64_t requests) {
  LoadPlan plan = plan_of(connections, requests);
  plan.request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{\"n\":###}";
  plan.rules.number_placeholder = NumberPlaceholder::find(plan.request).value();
  return plan;
}

TEST_F(Load, NumbersDistinguishRequests) {
  std::vector<std::string> bodies;
  http::Router routes;
  routes.post("/", [&bodies](http::Request& request) -> Task<http::Response> {
    auto body = co_await request.body();
    if (!body) co_return http::Status::bad_request;
    bodies.push_back(*body);
    co_return http::text(std::move(*body));
  });
  for (const unsigned depth : {1U, 16U}) {
    LoadPlan plan = numbered_plan(4, 200);
    plan.depth = depth;
    const LoadResult result = on_router(routes, plan);
    EXPECT_EQ(result.responses, 200U);
    EXPECT_EQ(result.errors.total(), 0U);
  }
  std::ranges::sort(bodies);
  bodies.erase(std::ranges::unique(bodies).begin(), bodies.end());
  EXPECT_GT(bodies.size(), 150U);
}

TEST_F(Load, NumbersDetectResponsesInTheWrongOrder) {
  // Two requests arrive in one piece, and their responses leave in reverse order.
  const Behaviour reversing = [](tcp::Stream stream) -> Task<> {
    while (auto input = co_await stream.read()) {
      const std::string_view text = input->text();
      const std::string_view second = text.substr(text.size() - 9);
      const std::string_view first = text.substr(text.size() / 2 - 9, 9);
      std::string answers;
      for (const std::string_view body : {second, first}) {
        answers.append("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").append(body);
      }
      if (!co_await stream.write(answers)) co_return;
    }
  };
  LoadPlan plan = numbered_plan(1, 4);
  plan.depth = 2;
  const LoadResult result = on_raw(reversing, plan);
  EXPECT_EQ(result.responses, 0U);
  EXPECT_EQ(result.errors.of(ResponseError::number), 2U);
}

TEST_F(Load, DoesNotCountTheWarmUp) {
  // Requests 0 to 49 are answered slowly, all within the first second.
  int count = 0;
  http::Router routes;
  routes.get("/", [&count]() -> Task<http::Response> {
    if (++count <= 50) std::ignore = co_await sleep(10ms);
    co_return http::text("Hello\n");
  });
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 50;
  plan.warm_up = 1s;
  plan.length = 2s;
  const LoadResult result = on_router(routes, plan);
  EXPECT_EQ(count, 150);
  EXPECT_EQ(result.responses + result.late, 100U);
  EXPECT_EQ(result.latency.count(), 100U);
  EXPECT_EQ(result.latency.max(), 0U);
  EXPECT_EQ(result.length, 2s);
}

TEST_F(Load, AbandonsRequestsInProgressAtTheEnd) {
  const Behaviour silent = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
    }
  };
  LoadPlan plan = plan_of(3, std::nullopt);
  plan.length = 1s;
  plan.timeout = 60s;
  plan.abandon = true;
  const LoadResult result = on_raw(silent, plan);
  EXPECT_EQ(result.abandoned, 3U);
  EXPECT_EQ(result.unanswered, 0U);
  EXPECT_EQ(result.starved, 3U) << "no response in the whole time";
  EXPECT_EQ(result.errors.total(), 0U);
  EXPECT_LT(elapsed(), 2s);
}

TEST_F(Load, ASlowlyAnsweredConnectionIsNotStarved) {
  const Behaviour slow = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
      std::ignore = co_await sleep(400ms);
      if (!co_await stream.write(hello_response)) co_return;
    }
  };
  LoadPlan plan = plan_of(3, std::nullopt);
  plan.length = 1s;
  plan.abandon = true;
  const LoadResult result = on_raw(slow, plan);
  EXPECT_EQ(result.responses, 6U);
  EXPECT_EQ(result.abandoned, 3U);
  EXPECT_EQ(result.starved, 0U);
}

TEST_F(Load, AcceptsResponsesThatEndWithTheConnection) {
  const Behaviour old = [](tcp::Stream stream) -> Task<> {
    if (co_await stream.read()) {
      std::ignore = co_await stream.write("HTTP/1.0 200 OK\r\n\r\nhello");
    }
  };
  const LoadResult result = on_raw(old, plan_of(2, 10));
  EXPECT_EQ(result.responses, 10U);
  EXPECT_EQ(result.closed_by_server, 10U);
  EXPECT_EQ(result.errors.total() + result.unanswered, 0U);
}

TEST(LoadPlan, SharesAddUpToThePlan) {
  LoadPlan plan = plan_of(10, 101);
  plan.rate = 1000;
  unsigned connections = 0;
  std::uint64_t requests = 0;
  double rate = 0;
  for (unsigned thread = 0; thread < 3; ++thread) {
    const LoadPlan share = share_of(plan, thread, 3);
    connections += share.connections;
    requests += share.requests.value();
    rate += share.rate;
  }
  EXPECT_EQ(connections, 10U);
  EXPECT_EQ(requests, 101U);
  EXPECT_DOUBLE_EQ(rate, 1000);
}

TEST(LoadPlan, AShareOfZeroRequestsIsNotUnlimited) {
  EXPECT_EQ(share_of(plan_of(2, 1), 0, 2).requests, 1U);
  EXPECT_EQ(share_of(plan_of(2, 1), 1, 2).requests, 0U);
  EXPECT_EQ(share_of(plan_of(2, std::nullopt), 1, 2).requests, std::nullopt);
}

TEST(LoadResult, DifferentBodiesOfThreadsAreAnError) {
  LoadResult first;
  first.body = "hello";
  first.body_bytes = 5;
  LoadResult second = first;
  LoadResult none;
  LoadResult other = first;
  other.body = "jello";
  LoadResult total;
  for (const LoadResult* each : {&none, &first, &second}) total.add(*each);
  EXPECT_EQ(total.errors.total(), 0U);
  total.add(other);
  EXPECT_EQ(total.errors.of(ResponseError::body), 1U);
}

TEST_F(Load, APlanOfZeroRequestsSendsNone) {
  const LoadResult result = run_made(generate_load, plan_of(2, 0));
  EXPECT_EQ(result.responses + result.unanswered, 0U);
  EXPECT_EQ(result.per_second, 0) << "also if no time has passed";
}

TEST(LoadPlan, SharesKeepConnectionsApart) {
  LoadPlan plan = plan_of(10, 101);
  plan.rate = 1000;
  plan.server_cpu_time = [] { return std::optional<Duration>(1s); };
  const unsigned connections[] = {4, 3, 3};
  const std::uint64_t requests[] = {34, 34, 33};
  for (unsigned thread = 0; thread < 3; ++thread) {
    const LoadPlan share = share_of(plan, thread, 3);
    EXPECT_EQ(share.connections, connections[thread]);
    EXPECT_EQ(share.requests, requests[thread]);
    EXPECT_EQ(share.first_connection_index, thread * 4);
    EXPECT_DOUBLE_EQ(share.rate, 100.0 * connections[thread]);
    EXPECT_EQ(share.server_cpu_time != nullptr, thread == 0) << "one thread measures the server";
  }
}

TEST_F(Load, CountsBytesAndStoresTheFirstBody) {
  const LoadResult result = on_raw(&answer_each, plan_of(2, 10));
  EXPECT_EQ(result.responses, 10U);
  EXPECT_EQ(result.bytes_received, 10 * hello_response.size());
  EXPECT_EQ(result.body, "hello");
  EXPECT_EQ(result.body_bytes, 5U);
  EXPECT_EQ(result.closed_by_server, 0U);
}

TEST_F(Load, MeasuresTheServerInTheMeasuredTimeOnly) {
  const Behaviour slow = [](tcp::Stream stream) -> Task<> {
    while (co_await stream.read()) {
      std::ignore = co_await sleep(100ms);
      if (!co_await stream.write(hello_response)) co_return;
    }
  };
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.warm_up = 1050ms;
  plan.length = 2s;
  plan.server_cpu_time = [this] { return std::optional<Duration>(elapsed() / 4); };
  const LoadResult result = on_raw(slow, plan);
  EXPECT_EQ(result.server_cpu_time, 500ms);
  EXPECT_EQ(result.length, 2s);
  EXPECT_EQ(result.responses, 20U);
  EXPECT_EQ(result.late, 1U);
  EXPECT_DOUBLE_EQ(result.per_second, 10);
  EXPECT_EQ(result.latency.min(), 100'000'000U);
  EXPECT_EQ(result.latency.max(), 100'000'000U);
  EXPECT_EQ(result.bytes_received, 21 * hello_response.size()) << "without the warm-up";
}

TEST_F(Load, ANumberOfRequestsHasNoWarmUp) {
  LoadPlan plan = plan_of(1, 3);
  plan.warm_up = 1s;
  const LoadResult result = on_raw(&answer_each, plan);
  EXPECT_EQ(result.latency.count(), 3U);
  EXPECT_EQ(result.bytes_received, 3 * hello_response.size());
}

TEST_F(Load, AServerThatIsNotMeasuredTwiceHasNoCpuTime) {
  for (const int missing : {0, 1, 2}) {
    LoadPlan plan = plan_of(1, 3);
    int calls = 0;
    plan.server_cpu_time = [&]() -> std::optional<Duration> {
      if (calls++ == missing) return std::nullopt;
      return Duration(1s) * calls;
    };
    const LoadResult result = on_raw(&answer_each, plan);
    EXPECT_EQ(result.responses, 3U);
    EXPECT_EQ(calls, 2) << "at the beginning and at the end";
    EXPECT_EQ(result.server_cpu_time, missing == 2 ? std::optional<Duration>(1s) : std::nullopt);
  }
}

TEST_F(Load, AFixedRateConnectsAgainAfterAnAnnouncedClose) {
  const Behaviour polite = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_closing);
  };
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 10;
  plan.length = 1s;
  const LoadResult result = on_raw(polite, plan);
  EXPECT_EQ(result.responses, 10U);
  EXPECT_EQ(result.connections, 10U);
  EXPECT_EQ(result.closed_by_server, 10U);
  EXPECT_EQ(result.unanswered + result.unsent, 0U);
  EXPECT_EQ(result.errors.total(), 0U);
}

TEST_F(Load, AnAnnouncedCloseLeavesTheRestOfABatchUnanswered) {
  const Behaviour one_of_three = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_closing);
    while (co_await stream.read()) {
    }
  };
  LoadPlan plan = plan_of(1, 9);
  plan.depth = 3;
  const LoadResult result = on_raw(one_of_three, plan);
  EXPECT_EQ(result.responses, 3U);
  EXPECT_EQ(result.unanswered, 6U);
  EXPECT_EQ(result.closed_by_server, 3U);
  EXPECT_EQ(result.connections, 3U);
  EXPECT_EQ(result.errors.total(), 0U);
}

TEST_F(Load, BytesAfterTheOnlyResponseAreAnError) {
  const Behaviour talkative = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(hello_closing);
    std::ignore = co_await sleep(10ms);
    std::ignore = co_await stream.write("more");
  };
  LoadPlan plan = plan_of(1, 2);
  plan.new_connections = true;
  const LoadResult result = on_raw(talkative, plan);
  EXPECT_EQ(result.responses, 2U);
  EXPECT_EQ(result.errors.of(ResponseError::unexpected), 2U);
  EXPECT_EQ(result.errors.total(), 2U);
}

TEST_F(Load, AFailedConnectionPausesBeforeItTriesAgain) {
  LoadPlan plan = plan_of(1, 5);
  const LoadResult result = run_made(generate_load, plan);
  EXPECT_EQ(result.errors.of(LoadError::refused), 5U);
  EXPECT_EQ(elapsed(), 40ms) << "10 ms for each, except the one before the load begins";
  EXPECT_EQ(result.connections, 0U);
}

TEST_F(Load, ACloseBeforeTheResponseIsNoBrokenConnection) {
  const Behaviour closing = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
  };
  const LoadResult result = on_raw(closing, plan_of(1, 3));
  EXPECT_EQ(result.errors.of(LoadError::ended), 3U);
  EXPECT_EQ(result.errors.total(), 3U);
  EXPECT_EQ(result.unanswered, 3U);
  EXPECT_GE(elapsed(), 20ms) << "a failed connection pauses before the next request";
}

Task<LoadResult> load_until_drained(Scope& scope, Behaviour behaviour, LoadPlan plan) {
  scope.spawn(serve_raw(scope, behaviour));
  const auto drain = [&scope]() -> Task<> {
    std::ignore = co_await sleep(1050ms);
    scope.loop().drain();
  };
  scope.spawn(drain());
  LoadResult result = co_await generate_load(std::move(plan));
  scope.cancel();
  co_return result;
}

TEST_F(Load, DrainingTheLoopEndsTheMeasuredTime) {
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 10;
  plan.length = 10s;
  const auto drained = [&](LoadPlan own) -> Task<LoadResult> {
    auto result = co_await with_scope(load_until_drained, &answer_each, std::move(own));
    co_return std::move(*result);
  };
  const LoadResult result = run_made(drained, std::move(plan));
  EXPECT_EQ(result.length, 1050ms);
  EXPECT_EQ(result.responses, 11U);
  EXPECT_EQ(result.unsent, 0U) << "no request is due after the end";
  EXPECT_EQ(result.latency.count(), 11U);
}

/// Puts a load on a server that accepts no connection. `queued` connections wait already.
Task<LoadResult> load_on_queue(ListenOptions options, unsigned queued, LoadPlan plan) {
  const auto listener = co_await tcp::listen(endpoint, options);
  EXPECT_TRUE(listener);
  std::vector<tcp::Stream> waiting;
  for (; queued != 0; --queued) {
    auto stream = co_await tcp::connect(endpoint);
    EXPECT_TRUE(stream);
    waiting.push_back(std::move(*stream));
  }
  co_return co_await generate_load(std::move(plan));
}

TEST_F(Load, AConnectThatTimesOutIsAnError) {
  const ListenOptions small{.backlog = 0};
  LoadPlan plan = plan_of(1, 3);
  plan.timeout = 2s;
  const LoadResult result = run_made(load_on_queue, small, 1U, plan);
  EXPECT_EQ(result.errors.of(LoadError::timed_out), 3U);
  EXPECT_EQ(result.errors.total(), 3U);
  EXPECT_EQ(result.unanswered, 3U);
  EXPECT_EQ(result.connections, 0U);
  EXPECT_EQ(elapsed(), 6020ms) << "with a pause of 10 ms before the second and third request";
}

/// A load that is cancelled after 900 ms, and its result.
struct CancelledLoad {
  const char* what;
  std::optional<std::uint64_t> requests;
  double rate;
  bool new_connections;
  unsigned queued;
  std::uint64_t unanswered;
};

TEST_F(Load, ACancelledLoadEndsImmediatelyWithoutErrors) {
  for (const CancelledLoad& each : {
           CancelledLoad{"a number of requests", 7, 0, false, 0, 3},
           CancelledLoad{"a time", std::nullopt, 0, false, 0, 3},
           CancelledLoad{"a fixed rate", std::nullopt, 3, false, 0, 3},
           CancelledLoad{"new connections", 7, 0, true, 0, 3},
           CancelledLoad{"new connections for a time", std::nullopt, 0, true, 0, 3},
           CancelledLoad{"connects", 7, 0, false, 1, 0},
           CancelledLoad{"connects for a time", std::nullopt, 0, false, 1, 0},
           CancelledLoad{"new connects for a time", std::nullopt, 0, true, 1, 0},
       }) {
    SCOPED_TRACE(each.what);
    const ListenOptions options{.backlog = each.queued == 0 ? 10 : 0};
    LoadPlan plan = plan_of(3, each.requests);
    plan.rate = each.rate;
    plan.new_connections = each.new_connections;
    plan.length = 10s;
    plan.abandon = true;
    CancelSource cancel;
    const Instant begun = platform_.now();
    platform_.at(begun + 900ms, [&cancel] { cancel.cancel(); });
    const LoadResult result = run(load_on_queue(options, each.queued, plan), &cancel);
    EXPECT_EQ(platform_.now() - begun, 900ms);
    EXPECT_EQ(result.errors.total(), 0U);
    EXPECT_EQ(result.unanswered, each.unanswered);
    EXPECT_EQ(result.abandoned + result.unsent + result.responses, 0U);
    EXPECT_EQ(result.connections, each.unanswered);
  }
}

TEST_F(Load, ACancelledLoadThatWaitsForItsNextRequestHasNoneUnsent) {
  LoadPlan plan = plan_of(1, std::nullopt);
  plan.rate = 1;
  plan.length = 10s;
  const auto load = [&](Scope& scope) -> Task<LoadResult> {
    scope.spawn(serve_raw(scope, &answer_each));
    CancelSource cancel;
    platform_.at(platform_.now() + 900ms, [&cancel] { cancel.cancel(); });
    auto loading = in_context(Context{&scope.loop(), &cancel}, generate_load(plan));
    LoadResult result = co_await std::move(loading);
    scope.cancel();
    co_return result;
  };
  const auto all = [&]() -> Task<LoadResult> {
    auto result = co_await with_scope(load);
    co_return std::move(*result);
  };
  const LoadResult result = run_made(all);
  EXPECT_EQ(result.responses, 1U);
  EXPECT_EQ(result.unsent, 0U);
  EXPECT_EQ(result.latency.count(), 1U);
}

}  // namespace
}  // namespace weir::bench::load_test
