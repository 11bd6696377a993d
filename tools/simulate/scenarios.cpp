#include "tools/simulate/scenarios.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulate/http_service.hpp"
#include "tools/simulate/overload.hpp"
#include "tools/simulate/play_scenarios.hpp"
#include "tools/simulate/request_monitor.hpp"
#include "tools/simulate/restarts.hpp"
#include "tools/simulate/runtime_monitor.hpp"
#include "weir/sim/http/http_traffic.hpp"

namespace weir::simulate {
namespace {

constexpr Duration limit = std::chrono::hours(1);

RuntimeOptions quiet(unsigned cores) {
  return {.cores = cores, .announce = false};
}

/// A main function of a client.
int ask(Host& host, HttpTraffic& traffic) {
  return Runtime(host, quiet(1)).run_on_each_core([&traffic](Scope& scope) {
    return traffic.run(scope);
  });
}

/// One fault, somewhere in a run that is known to go well without.
Outcome with_strike(const WorldOptions& options) {
  WorldOptions before = options;
  before.trace = false;
  Outcome outcome = run_http(before, {});
  if (!outcome.report.ok()) return outcome;
  constexpr std::array faults = {Fault::reset, Fault::half_close, Fault::stall, Fault::full_buffer};
  // Not from the World's own seed: what comes before the strike stays as it was.
  WorldDraw draw(~options.seed);
  const std::uint64_t at = draw.below(outcome.operations);
  return run_http(options, {.disturb = strike(at, faults[draw.below(faults.size())])});
}

Outcome undisturbed(const WorldOptions& options) {
  return run_http(options, {});
}

Outcome with_faults(const WorldOptions& options) {
  return run_http(options, {.disturb = faults_now_and_then});
}

Outcome with_partitions(const WorldOptions& options) {
  return run_http(options, {.disturb = cut_now_and_then});
}

Outcome with_limits(const WorldOptions& options) {
  return run_http(options, limits_run());
}

Outcome with_drain(const WorldOptions& options) {
  return run_http(options, {.disturb = end_early});
}

/// What a World reports of a server of which a core has no memory to begin with.
constexpr std::string_view not_begun = "server: main has returned 1";

Outcome with_little_memory(const WorldOptions& options) {
  WorldDraw draw(~options.seed);
  const auto core = static_cast<unsigned>(draw.below(2));
  // Many runs end before a thousand blocks have been taken.
  const std::size_t number = draw.below(draw.happens(0.5) ? 150 : 1500);
  Outcome outcome = run_http(options, {.disturb = fail_allocation(core, number)});
  if (outcome.struck == 0 || number >= allocations_to_begin()) return outcome;
  if (std::erase(outcome.report.failures, not_begun) != 1) {
    outcome.report.failures.emplace_back("server: has not told that it could not begin");
  }
  return outcome;
}

/// Few are enough for a core to have too many.
Outcome with_balance(const WorldOptions& options) {
  WorldOptions crowded = options;
  crowded.variation.crowding = 0.9;
  return run_http(crowded, {.connections = 150, .requests_max = 3});
}

constexpr std::array all_scenarios = {
    Scenario{"http", "an HTTP server on two cores, pipelined requests of all kinds", undisturbed},
    Scenario{"faults", "the same while connections are reset, half-closed and stalled",
             with_faults},
    Scenario{"strike", "the same with one fault at an operation that is drawn", with_strike},
    Scenario{"partitions", "the same while one host of clients is cut off and reached again",
             with_partitions},
    Scenario{"limits", "the same with more clients than may be served", with_limits},
    Scenario{"drain", "the same while the server is told to end, perhaps twice", with_drain},
    Scenario{"memory", "the same while one allocation of the server fails", with_little_memory},
    Scenario{"balance", "the same with far more connections on one core than on the other",
             with_balance},
    Scenario{"overload", "more connections, requests, bytes and slow peers than the limits allow",
             with_overload},
    Scenario{"restarts", "processes that take over from each other while clients come and go",
             with_restarts},
    Scenario{"deaths", "the same while one of the processes dies at a step of a handover",
             with_deaths},
    Scenario{"routes", "pages that are asked for while their routes come, go and are replaced",
             with_routes},
    Scenario{"services", "pages of services that are replaced while they are asked for",
             with_services},
    Scenario{"cores", "one to five cores that use mailboxes, broadcasts, calls and a pool",
             with_cores},
    Scenario{"events", "one to five cores that tell each other events until these are stopped",
             with_events},
    Scenario{"datagrams", "questions by datagrams that are lost, doubled and cut off",
             with_datagrams},
};

}  // namespace

std::span<const Scenario> scenarios() {
  return all_scenarios;
}

const Scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(all_scenarios, name, &Scenario::name);
  return found == all_scenarios.end() ? nullptr : &*found;
}

WorldOptions options_for(const Scenario& scenario, std::uint64_t seed, bool trace) {
  WorldOptions options{.seed = seed, .trace = trace};
  options.replay = "./dev simulate --only " + std::string(scenario.name) + " --trace --seed ";
  return options;
}

http::Limits small_limits() {
  return {.head = {.request_line_max = 1024, .fields_bytes_max = 4096}, .linger_bytes_max = 4096};
}

/// More clients than may be served, and little patience with them.
HttpRun limits_run() {
  http::Limits limits = small_limits();
  limits.head_timeout = limits.idle_timeout = std::chrono::seconds(1);
  limits.connections_max = 4;
  return {.connections = 12, .limits = limits, .disturb = only_limits(limits)};
}

Outcome run_http(const WorldOptions& options, const HttpRun& run) {
  World world(options);
  WorldHost& server = world.host("server", {.cores = 2});
  std::array<std::unique_ptr<HttpTraffic>, 2> traffics;
  HttpExcuses excuses;
  RuntimeWatch watch({.connections_max = run.limits.connections_max});
  RequestWatch requests(ahead_max(run.limits), [&](const Endpoint& client, std::size_t count) {
    std::size_t end = 0;  // it is a client of one of them
    for (const auto& traffic : traffics) end += traffic->end_of(client, count);
    return end;
  });
  const bool drawn = world.draw().happens(0.5);
  RequestWatch* const seeing = run.watched.value_or(drawn) ? &requests : nullptr;
  server.start_service([&](Host& host) {
    if (run.serve) return run.serve(host);
    return serve_http(
        host, {.runtime = quiet(2), .limits = run.limits, .watch = &watch, .requests = seeing});
  });
  world.always("report", [&watch] { return watch.find_fault(); });
  if (seeing != nullptr) {
    world.always("requests", [&] { return requests.find_fault(server); });
  }
  for (std::size_t number = 0; number < traffics.size(); ++number) {
    traffics[number] =
        std::make_unique<HttpTraffic>(HttpTrafficOptions{.server = server.address(80),
                                                         .connections = run.connections,
                                                         .requests_max = run.requests_max});
    HttpTraffic& traffic = *traffics[number];
    WorldHost& clients = world.host("clients " + std::to_string(number));
    clients.start([&traffic](Host& host) { return ask(host, traffic); });
    world.check(clients.name(), [&traffic, &clients, &excuses] {
      return traffic.find_fault([&](const HttpTalk& talk) { return excuses(clients, talk); });
    });
  }
  excuses = run.disturb(world);
  Outcome outcome{.report = world.run_until_done(limit)};
  outcome.trace = world.trace();
  outcome.struck = world.faults().struck();
  outcome.operations = server.operations();
  outcome.handed_over = watch.handed_over();
  outcome.ahead_most = requests.ahead_most();
  for (const auto& traffic : traffics) outcome.answered += traffic->answered();
  return outcome;
}

std::size_t allocations_to_begin() {
  static const std::size_t found = [] {
    const auto ends = [](std::size_t number) {
      const HttpRun run{.connections = 1, .requests_max = 1, .disturb = fail_allocation(0, number)};
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
