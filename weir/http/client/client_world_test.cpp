// Tests of the client in a World: its server closes idle connections at the moments at which the
// client uses them again.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// The counts of the server and of the client.
struct Record {
  std::map<std::string, int> requests;  ///< number of arrivals of each request line
  std::size_t connections = 0;
  std::size_t gets = 0;
  std::size_t failed_gets = 0;
  std::size_t lost_posts = 0;
};

/// The objects of one run.
struct Run {
  sim::World& world;
  sim::Host& server;
  Record& record;
};

/// Answers requests until none comes for 5 s, give or take 5 ms.
Task<> serve_connection_of(Run& run, tcp::Stream stream) {
  ++run.record.connections;
  std::string input;
  while (true) {
    const Duration patience = run.world.random().between(4995ms, 5005ms);
    while (input.find("\r\n\r\n") == std::string::npos) {
      const auto piece = co_await stream.read({.timeout = patience});
      if (!piece) co_return;
      input += piece->text();
    }
    ++run.record.requests[input.substr(0, input.find("\r\n"))];
    input.clear();
    const auto written = co_await stream.write(answer);
    if (!written) co_return;
  }
}

Task<Result<>> serve_run(Scope& scope, Run& run) {
  auto listener = co_await tcp::listen(Endpoint::any(80));
  if (!listener) co_return fail(listener.error());
  while (true) {
    auto stream = co_await listener->accept();
    if (!stream) co_return fail(stream.error());
    scope.spawn(serve_connection_of(run, std::move(*stream)));
  }
}

/// Sends requests with a client of its own, so that each pause is the idle time of a connection.
Task<> send_requests(Run& run, int worker, int count) {
  ClientOptions options;
  options.limits.idle_timeout = 10s;  // the server closes first
  Client client(std::move(options));
  const std::string origin = "http://server/" + std::to_string(worker) + "/";
  for (int number = 0; number < count; ++number) {
    const Duration pause = run.world.random().between(4990ms, 5006ms);
    const auto slept = co_await sleep(pause);
    if (!slept) co_return;
    const bool posts = run.world.random().below(4) == 0;
    ClientRequest request(posts ? Method::post : Method::get, origin + std::to_string(number));
    auto response = co_await client.send(std::move(request));
    bool fine = false;
    if (response) {
      const auto body = co_await response->body();
      fine = body && *body == "hello";
    }
    if (posts) {
      if (!fine) ++run.record.lost_posts;
      continue;
    }
    ++run.record.gets;
    if (!fine) ++run.record.failed_gets;
  }
}

Task<Result<>> ask_run(Scope&, Run& run, int workers, int count) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  std::vector<Task<>> sending;
  for (int worker = 0; worker < workers; ++worker) {
    sending.push_back(send_requests(run, worker, count));
  }
  const auto done = co_await all(std::move(sending));
  if (!done) co_return fail(done.error());
  co_return {};
}

void run_once(Record& record, int workers, int count) {
  sim::World world(fresh_world_options());
  sim::Host& server = world.host("server");
  Run run{world, server, record};
  server.start_service([&run](loop::Platform& host) {
    return Runtime(host, sim::quiet()).run_on_each_core(serve_run, std::ref(run));
  });
  world.host("client").start([&](loop::Platform& host) {
    return Runtime(host, sim::quiet()).run_on_each_core(ask_run, std::ref(run), workers, count);
  });
  const sim::WorldReport report = world.run_until_done(24h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(ClientInTheWorld, NoIdempotentRequestFailsWhileTheServerClosesIdleConnections) {
  std::size_t posts = 0;
  Record all_runs;
  for (int seed = 0; seed < 3; ++seed) {
    Record record;
    run_once(record, 20, 60);
    EXPECT_EQ(record.failed_gets, 0U);
    for (const auto& [line, arrivals] : record.requests) {
      if (!line.starts_with("POST")) continue;
      ++posts;
      EXPECT_EQ(arrivals, 1) << line;
    }
    all_runs.gets += record.gets;
    all_runs.lost_posts += record.lost_posts;
    all_runs.connections += record.connections;
  }
  EXPECT_GT(all_runs.gets, 2000U);
  EXPECT_GT(posts, 500U);
  EXPECT_GT(all_runs.lost_posts, 5U) << "hardly a request met the end of its connection";
  RecordProperty("lost_posts", static_cast<int>(all_runs.lost_posts));
}

}  // namespace
}  // namespace weir::http
