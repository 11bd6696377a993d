#include "tools/simulate/overload.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tools/simulate/attackers.hpp"
#include "tools/simulate/heap.hpp"
#include "tools/simulate/http_service.hpp"
#include "tools/simulate/regular_clients.hpp"
#include "tools/simulate/runtime_monitor.hpp"
#include "weir/http/memory_bound.hpp"
#include "weir/http/serve.hpp"
#include "weir/sim/http/http_traffic.hpp"

namespace weir::simulate {
namespace {

// The plan, from the beginning of the run.
constexpr Duration service_is_up = std::chrono::milliseconds(250);
constexpr Duration attack_begins = std::chrono::milliseconds(700);
constexpr Duration attack_ends = std::chrono::milliseconds(8700);
constexpr Duration all_is_over = std::chrono::milliseconds(11'000);
// What was on its way when the attackers left has arrived by then.
constexpr Duration all_is_as_before = std::chrono::milliseconds(9700);

constexpr std::size_t regular_count = 3;
constexpr std::size_t newcomers = 6;
constexpr std::size_t large_bytes = 200'000;
// What clients, and a malloc that rounds up, have of their own.
constexpr std::size_t elsewhere_max = std::size_t{1} << 20;

http::Response large() {
  return http::text(std::string(large_bytes, 'x'));
}

/// Its memory is seen only if it has been written to.
Task<http::Response> count(std::size_t hoards, http::Request& request) {
  const std::string hoarded(hoards, 'h');
  const auto body = co_await request.body();
  if (!body) co_return http::status_for(body.error());
  co_return http::text(std::to_string(body->size()) + " bytes\n");
}

/// The server's memory, between turns.
class MemoryWatch {
 public:
  MemoryWatch(const World& world, const Attackers& attackers, const http::MemoryBound& bound)
      : world_(world), attackers_(attackers), bound_(bound) {}

  /// What is there now belongs to nobody's connections.
  void begin() { rest_ = others(); }
  std::string find_fault(const RuntimeReport& report) {
    if (rest_ == 0) return {};
    const auto cached = static_cast<std::size_t>(report.total().cached_bytes);
    const std::size_t now = others() - std::min(others(), rest_ + cached);
    most_ = std::max(most_, now);
    if (now > bound_.in_use()) {
      return std::to_string(now) + " bytes are held, and " + std::to_string(bound_.in_use()) +
             " may be";
    }
    const std::size_t theirs = report.connections * bound_.connection + elsewhere_max;
    if (recovers_ && (now > theirs || report.connections > regular_count + newcomers)) {
      return "the attackers have gone, but " + std::to_string(now) + " bytes and " +
             std::to_string(report.connections) + " connections are there";
    }
    return {};
  }
  /// From now on all must be as it was before.
  void expect_rest() { recovers_ = true; }
  std::size_t most() const noexcept { return most_; }

 private:
  /// But for the network, and for the trace if there is one.
  std::size_t others() const {
    return heap_bytes() - std::min(heap_bytes(), attackers_.held() + world_.trace().capacity());
  }

  const World& world_;
  const Attackers& attackers_;
  http::MemoryBound bound_;
  std::size_t rest_ = 0;
  std::size_t most_ = 0;
  bool recovers_ = false;
};

RuntimeOptions quiet(unsigned cores) {
  return {.cores = cores, .announce = false};
}

int serve(Host& host, unsigned cores, const OverloadRun& run, RuntimeWatch& watch) {
  http::Router routes;
  add_routes(routes);
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/large", large);
  routes.post("/count", [&run](http::Request& request) { return count(run.hoards, request); });
  Runtime runtime(host, quiet(cores));
  const RuntimeWatch::Watching watching(&watch, runtime);
  return runtime.run_on_each_core(http::serve_with, std::cref(routes), Endpoint::any(80),
                                  run.limits);
}

template <class Clients>
void start(WorldHost& host, Clients& clients) {
  host.start([&clients](Host& of) {
    return Runtime(of, quiet(1)).run_on_each_core([&clients](Scope& scope) {
      return clients.run(scope);
    });
  });
}

}  // namespace

http::Limits impatient_limits() {
  constexpr Duration second = std::chrono::seconds(1);
  return {.head_timeout = second,
          .idle_timeout = 2 * second,
          .body_max = 64 * 1024,
          .body_rate = {second, 20'000, second},
          .write_rate = {second, 20'000, second},
          .connections_max = 24};
}

OverloadOutcome run_overload(const WorldOptions& options, const OverloadRun& run) {
  World world(options);
  const auto cores = 2 + static_cast<unsigned>(world.draw().below(3));
  // The network's buffers are small, so that what a slow reader does is soon seen.
  WorldHost& server = world.host("server", {.cores = cores, .buffer_bytes = 16 * 1024});
  WorldHost& hostile = world.host("attackers", {.buffer_bytes = 16 * 1024});
  const http::Limits promised = impatient_limits();
  const http::MemoryBound bound = http::memory_bound(
      promised, {.cores = cores, .handler_bytes = large_bytes + std::size_t{16} * 1024});

  Attackers attackers(world, hostile, server.address(80), {});
  MemoryWatch memory(world, attackers, bound);
  RuntimeWatch watch(
      {.connections_max = promised.connections_max,
       .look = [&memory](const RuntimeReport& now) { return memory.find_fault(now); }});
  RegularClients regular({.server = server.address(80), .connections = regular_count});
  HttpTraffic late({.server = server.address(80)});
  HttpTraffic later({.server = server.address(80), .connections = newcomers});
  server.start_service([&](Host& host) { return serve(host, cores, run, watch); });
  start(world.host("regular"), regular);
  start(world.host("late"), late);
  world.always("server", [&watch] { return watch.find_fault(); });
  world.check("regular", [&regular] { return regular.fault(); });
  world.check("late", [&] {
    return late.find_fault([&](const HttpTalk& talk) { return excuse_by_limits(promised, talk); });
  });
  world.check("later", [&later] { return later.find_fault(); });
  world.check("attackers", [&attackers] { return attackers.fault(); });
  WorldHost& newcoming = world.host("later");
  world.at(service_is_up, [&] { memory.begin(); });
  world.at(attack_begins, [&] { attackers.begin(); });
  world.at(attack_ends, [&] {
    attackers.end();
    start(newcoming, later);
  });
  world.at(all_is_as_before, [&] { memory.expect_rest(); });
  world.at(all_is_over, [&] { regular.stop(); });

  OverloadOutcome all{.outcome = {.report = world.run_until_done(std::chrono::hours(1))}};
  all.outcome.trace = world.trace();
  all.outcome.operations = server.operations();
  all.outcome.handed_over = watch.handed_over();
  all.outcome.answered = regular.answered() + late.answered() + later.answered();
  all.attackers_ended = attackers.ended();
  all.turned_away = attackers.answers(503);
  all.timed_out = attackers.answers(408);
  all.memory_most = memory.most();
  all.memory_bound = bound.in_use();
  return all;
}

Outcome with_overload(const WorldOptions& options) {
  return run_overload(options).outcome;
}

}  // namespace weir::simulate
