// The run of an overloaded server, with checks of its memory.
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
#include "weir/http/server/limits.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/http_testing/detail/http_traffic.hpp"

namespace weir::simulate {
namespace {

// The schedule, from the beginning of the run.
constexpr Duration service_is_up = std::chrono::milliseconds(250);
constexpr Duration attack_begins = std::chrono::milliseconds(700);
constexpr Duration attack_ends = std::chrono::milliseconds(8700);
constexpr Duration all_is_over = std::chrono::milliseconds(11'000);
// Everything in flight when the attackers left has arrived by then.
constexpr Duration all_is_as_before = std::chrono::milliseconds(9700);

constexpr std::size_t regular_count = 3;
constexpr std::size_t newcomers = 6;
constexpr std::size_t large_bytes = 200'000;
// Memory of clients, and of a malloc that rounds up.
constexpr std::size_t elsewhere_max = std::size_t{1} << 20;

http::Response large() {
  return http::text(std::string(large_bytes, 'x'));
}

/// Allocates `excess_bytes` and writes to them, so that the memory counts.
Task<http::Response> count(std::size_t excess_bytes, http::Request& request) {
  const std::string hoarded(excess_bytes, 'h');
  const auto body = co_await request.body();
  if (!body) co_return http::to_status(body.error());
  co_return http::text(std::to_string(body->size()) + " bytes\n");
}

/// Checks the memory of the server between turns.
class MemoryMonitor {
 public:
  MemoryMonitor(const sim::World& world, const Attackers& attackers, const http::MemoryBound& bound)
      : world_(world), attackers_(attackers), bound_(bound) {}

  /// Stores the present memory, which belongs to no connection.
  void begin() { rest_ = others(); }
  std::string find_violation(const RuntimeReport& report) {
    if (rest_ == 0) return {};
    const auto cached = static_cast<std::size_t>(report.total().cached_bytes);
    const std::size_t now = others() - std::min(others(), rest_ + cached);
    most_ = std::max(most_, now);
    if (now > bound_.in_use()) {
      return std::to_string(now) + " bytes are in use, the limit is " +
             std::to_string(bound_.in_use());
    }
    const std::size_t theirs = report.connections * bound_.connection + elsewhere_max;
    if (recovers_ && (now > theirs || report.connections > regular_count + newcomers)) {
      return "the attackers have disconnected, but " + std::to_string(now) + " bytes and " +
             std::to_string(report.connections) + " connections are left";
    }
    return {};
  }
  /// Requires from now on that the server has recovered.
  void expect_rest() { recovers_ = true; }
  std::size_t most() const noexcept { return most_; }

 private:
  /// Returns the heap in use, except for the network's memory and the trace.
  std::size_t others() const {
    return heap_bytes() -
           std::min(heap_bytes(), attackers_.in_flight_bytes() + world_.trace().capacity());
  }

  const sim::World& world_;
  const Attackers& attackers_;
  http::MemoryBound bound_;
  std::size_t rest_ = 0;
  std::size_t most_ = 0;
  bool recovers_ = false;
};

int serve(loop::Platform& host, unsigned cores, const OverloadRun& run, RuntimeMonitor& watch) {
  http::Router routes;
  add_routes(routes);
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/large", large);
  routes.post("/count",
              [&run](http::Request& request) { return count(run.excess_bytes, request); });
  Runtime runtime(host, quiet(cores));
  const RuntimeMonitor::Attachment watching(&watch, runtime);
  return runtime.run_on_each_core(http::serve, std::cref(routes),
                                  http::ServeOptions{Endpoint::any(80), run.limits});
}

template <class Clients>
void start(sim::Host& host, Clients& clients) {
  host.start([&clients](loop::Platform& of) {
    return Runtime(of, quiet(1)).run_on_each_core([&clients](Scope& scope) {
      return clients.run(scope);
    });
  });
}

}  // namespace

http::Limits short_timeout_limits() {
  constexpr Duration second = std::chrono::seconds(1);
  return {.head_timeout = second,
          .idle_timeout = 2 * second,
          .body_max = 64 * 1024,
          .body_rate = {second, 20'000, second},
          .write_rate = {second, 20'000, second},
          .connections_max = 24};
}

OverloadOutcome run_overload(const sim::WorldOptions& options, const OverloadRun& run) {
  sim::World world(options);
  const auto cores = 2 + static_cast<unsigned>(world.random().below(3));
  // Small network buffers make the effect of a slow reader visible soon.
  sim::Host& server = world.host("server", {.cores = cores, .buffer_bytes = 16 * 1024});
  sim::Host& hostile = world.host("attackers", {.buffer_bytes = 16 * 1024});
  const http::Limits promised = short_timeout_limits();
  const http::MemoryBound bound = http::memory_bound(
      promised, {.cores = cores, .handler_bytes = large_bytes + std::size_t{16} * 1024});

  Attackers attackers(world, hostile, server.address(80), {});
  MemoryMonitor memory(world, attackers, bound);
  RuntimeMonitor watch(
      {.connections_max = promised.connections_max,
       .look = [&memory](const RuntimeReport& now) { return memory.find_violation(now); }});
  RegularClients regular({.server = server.address(80), .connections = regular_count});
  sim::HttpTraffic late({.server = server.address(80)});
  sim::HttpTraffic later({.server = server.address(80), .connections = newcomers});
  server.start_service([&](loop::Platform& host) { return serve(host, cores, run, watch); });
  start(world.host("regular"), regular);
  start(world.host("late"), late);
  world.always("server", [&watch] { return watch.find_violation(); });
  world.check("regular", [&regular] { return regular.violation(); });
  world.check("late", [&] {
    return late.find_violation([&](const sim::HttpConnection& connection) {
      return tolerance_by_limits(promised, connection);
    });
  });
  world.check("later", [&later] { return later.find_violation(); });
  world.check("attackers", [&attackers] { return attackers.violation(); });
  sim::Host& newcoming = world.host("later");
  world.schedule(service_is_up, [&] { memory.begin(); });
  world.schedule(attack_begins, [&] { attackers.begin(); });
  world.schedule(attack_ends, [&] {
    attackers.end();
    start(newcoming, later);
  });
  world.schedule(all_is_as_before, [&] { memory.expect_rest(); });
  world.schedule(all_is_over, [&] { regular.stop(); });

  OverloadOutcome all{.outcome = {.report = world.run_until_done(std::chrono::hours(1))}};
  all.outcome.trace = world.trace();
  all.outcome.operations = server.operations();
  all.outcome.handed_over = watch.handed_over();
  all.outcome.answered = regular.answered() + late.answered() + later.answered();
  all.attackers_ended = attackers.ended();
  all.rejected = attackers.answers(503);
  all.timed_out = attackers.answers(408);
  all.memory_peak = memory.most();
  all.memory_bound = bound.in_use();
  return all;
}

Outcome with_overload(const sim::WorldOptions& options) {
  return run_overload(options).outcome;
}

}  // namespace weir::simulate
