// The list of scenarios, and the run of an HTTP server in a World.
#include "tools/simulate/scenarios.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulate/component_scenarios.hpp"
#include "tools/simulate/config_scenario.hpp"
#include "tools/simulate/http_service.hpp"
#include "tools/simulate/name_scenario.hpp"
#include "tools/simulate/overload.hpp"
#include "tools/simulate/request_monitor.hpp"
#include "tools/simulate/request_scenarios.hpp"
#include "tools/simulate/restarts.hpp"
#include "tools/simulate/runtime_monitor.hpp"
#include "weir/http_testing/detail/http_traffic.hpp"

namespace weir::simulate {
namespace {

constexpr Duration limit = std::chrono::hours(1);

/// The main function of a client.
int ask(loop::Platform& host, sim::HttpTraffic& traffic) {
  return Runtime(host, quiet(1)).run_on_each_core([&traffic](Scope& scope) {
    return traffic.run(scope);
  });
}

/// Injects one random fault into a run that passes without it.
Outcome with_one_fault(const sim::WorldOptions& options) {
  sim::WorldOptions before = options;
  before.trace = false;
  Outcome outcome = run_http(before, {});
  if (!outcome.report.ok()) return outcome;
  constexpr std::array faults = {sim::Fault::reset, sim::Fault::half_close, sim::Fault::stall,
                                 sim::Fault::full_buffer};
  // Uses a different seed than the World, so that the run stays the same until the fault.
  sim::Random random(~options.seed);
  const std::uint64_t at = random.below(outcome.operations);
  return run_http(options,
                  {.fault_schedule = inject_fault(at, faults[random.below(faults.size())])});
}

Outcome without_faults(const sim::WorldOptions& options) {
  return run_http(options, {});
}

Outcome with_faults(const sim::WorldOptions& options) {
  return run_http(options, {.fault_schedule = random_faults});
}

Outcome with_partitions(const sim::WorldOptions& options) {
  return run_http(options, {.fault_schedule = random_partitions});
}

Outcome with_limits(const sim::WorldOptions& options) {
  return run_http(options, limits_run());
}

Outcome with_drain(const sim::WorldOptions& options) {
  return run_http(options, {.fault_schedule = drain_early});
}

/// The failure that a World reports if a core of the server has no memory to begin.
constexpr std::string_view not_begun = "server: main returned 1";

Outcome with_little_memory(const sim::WorldOptions& options) {
  sim::Random random(~options.seed);
  const auto core = static_cast<unsigned>(random.below(2));
  // Half of the runs use a small number, because many runs end before a thousand allocations.
  const std::size_t number = random.below(random.bernoulli(0.5) ? 150 : 1500);
  Outcome outcome = run_http(options, {.fault_schedule = fail_allocation(core, number)});
  if (outcome.injected_faults == 0 || number >= allocations_to_begin()) return outcome;
  if (std::erase(outcome.report.failures, not_begun) != 1) {
    outcome.report.failures.emplace_back("server: has not reported that it could not begin");
  }
  return outcome;
}

/// Uses few requests, which are enough for one core to have too many connections.
Outcome with_balance(const sim::WorldOptions& options) {
  sim::WorldOptions skewed = options;
  skewed.jitter.skewed_accept = 0.9;
  return run_http(skewed, {.connections = 150, .requests_max = 3});
}

constexpr std::array all_scenarios = {
    Scenario{"http", "an HTTP server on two cores, pipelined requests of all kinds",
             without_faults},
    Scenario{"faults", "http, and connections are reset, half-closed and stalled", with_faults},
    Scenario{"fault", "http, and one fault at a random operation", with_one_fault},
    Scenario{"partitions", "http, and one host of clients is unreachable for a time",
             with_partitions},
    Scenario{"limits", "http, with more clients than the limit", with_limits},
    Scenario{"drain", "http, and the server gets one or two signals to stop", with_drain},
    Scenario{"memory", "http, and one allocation of the server fails", with_little_memory},
    Scenario{"balance", "http, with far more connections on one core than on the other",
             with_balance},
    Scenario{"overload", "more connections, requests, bytes and slow peers than the limits allow",
             with_overload},
    Scenario{"restarts", "hot restarts while clients connect and disconnect", with_restarts},
    Scenario{"kills", "restarts, and one process dies at a step of a handover", with_kills},
    Scenario{"routes",
             "pages that are requested while their routes are added, removed and replaced",
             with_routes},
    Scenario{"services", "pages of services that are replaced while they are requested",
             with_services},
    Scenario{"cores", "one to five cores that use mailboxes, broadcasts, calls and a pool",
             with_cores},
    Scenario{"events",
             "one to five cores that publish events for each other until the bus is stopped",
             with_events},
    Scenario{"client", "an HTTP client whose server closes connections at the moments of their use",
             with_client},
    Scenario{"http2",
             "clients of HTTP/2 that cancel, read slowly and leave, and a server that drains",
             with_http2},
    Scenario{"http2_cuts", "clients of HTTP/2 that vanish at each byte of a request with a body",
             with_http2_cuts},
    Scenario{"http2_restarts", "an HTTP/2 client whose server drains, dies and is replaced",
             with_http2_restarts},
    Scenario{"websockets",
             "WebSockets that clients and the server close, and topics with slow subscribers",
             with_websockets},
    Scenario{"websocket_cuts",
             "clients of WebSockets that vanish at each byte of a handshake and of messages",
             with_websocket_cuts},
    Scenario{"tls", "HTTPS with certificates and keys that change, and peers that are not trusted",
             with_tls},
    Scenario{"datagrams", "requests in datagrams that are lost, duplicated and truncated",
             with_datagrams},
    Scenario{"names", "names of servers that fail, with cached results and hosts that do not reply",
             with_names},
    Scenario{"targets", "request targets in any encoding, which many routes could match",
             with_targets},
    Scenario{"documents", "JSON bodies that are read and written again, or that are broken",
             with_documents},
    Scenario{"config", "configurations from files, variables and arguments; files change and fail",
             with_config},
    Scenario{"pools", "one to five cores that share a pool with lanes and a size that changes",
             with_pools},
};

}  // namespace

std::span<const Scenario> scenarios() {
  return all_scenarios;
}

const Scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(all_scenarios, name, &Scenario::name);
  return found == all_scenarios.end() ? nullptr : &*found;
}

sim::WorldOptions options_for(const Scenario& scenario, std::uint64_t seed, bool trace) {
  sim::WorldOptions options{.seed = seed, .trace = trace};
  options.replay = "./dev simulate --only " + std::string(scenario.name) + " --trace --seed ";
  return options;
}

http::Limits small_limits() {
  return {.head = {.request_line_max = 1024, .headers_bytes_max = 4096},
          .linger_bytes_max = 4096,
          .rejected_body_max = 4096};
}

/// More clients than the server may serve, and short timeouts.
HttpRun limits_run() {
  http::Limits limits = small_limits();
  limits.head_timeout = limits.idle_timeout = std::chrono::seconds(1);
  limits.connections_max = 4;
  return {.connections = 12, .limits = limits, .fault_schedule = tolerate_limits(limits)};
}

Outcome run_http(const sim::WorldOptions& options, const HttpRun& run) {
  sim::World world(options);
  sim::Host& server = world.host("server", {.cores = 2});
  std::array<std::unique_ptr<sim::HttpTraffic>, 2> traffics;
  ToleranceFunction tolerance_of;
  RuntimeMonitor watch({.connections_max = run.limits.connections_max});
  RequestMonitor requests(read_ahead_max(run.limits),
                          [&](const Endpoint& client, std::size_t count) {
                            std::size_t end = 0;  // the client belongs to one of them
                            for (const auto& traffic : traffics)
                              end += traffic->end_of(client, count);
                            return end;
                          });
  const bool drawn = world.random().bernoulli(0.5);
  RequestMonitor* const seeing = run.watched.value_or(drawn) ? &requests : nullptr;
  server.start_service([&](loop::Platform& host) {
    if (run.serve) return run.serve(host);
    return serve_http(
        host, {.runtime = quiet(2), .limits = run.limits, .watch = &watch, .requests = seeing});
  });
  world.always("report", [&watch] { return watch.find_violation(); });
  if (seeing != nullptr) {
    world.always("requests", [&] { return requests.find_violation(server); });
  }
  for (std::size_t number = 0; number < traffics.size(); ++number) {
    traffics[number] = std::make_unique<sim::HttpTraffic>(
        sim::HttpTrafficOptions{.server = server.address(80),
                                .connections = run.connections,
                                .requests_max = run.requests_max});
    sim::HttpTraffic& traffic = *traffics[number];
    sim::Host& clients = world.host("clients " + std::to_string(number));
    clients.start([&traffic](loop::Platform& host) { return ask(host, traffic); });
    world.check(clients.name(), [&traffic, &clients, &tolerance_of] {
      return traffic.find_violation(
          [&](const sim::HttpConnection& connection) { return tolerance_of(clients, connection); });
    });
  }
  tolerance_of = run.fault_schedule(world);
  Outcome outcome{.report = world.run_until_done(limit)};
  outcome.trace = world.trace();
  outcome.injected_faults = world.faults().injected();
  outcome.operations = server.operations();
  outcome.handed_over = watch.handed_over();
  outcome.read_ahead_max_seen = requests.read_ahead_max_seen();
  for (const auto& traffic : traffics) outcome.answered += traffic->answered();
  return outcome;
}

std::size_t allocations_to_begin() {
  static const std::size_t found = [] {
    const auto ends = [](std::size_t number) {
      const HttpRun run{
          .connections = 1, .requests_max = 1, .fault_schedule = fail_allocation(0, number)};
      const std::vector<std::string> failures = run_http({.seed = 1}, run).report.failures;
      return std::ranges::find(failures, not_begun) != failures.end();
    };
    std::size_t number = 0;
    while (number < 100 && ends(number)) ++number;
    return number;
  }();
  return found;
}

}  // namespace weir::simulate
