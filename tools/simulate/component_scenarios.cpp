// Worlds with pages, cores, events, pools and datagrams.
#include "tools/simulate/component_scenarios.hpp"

#include <array>
#include <functional>
#include <memory>

#include "tools/simulate/changing_pages.hpp"
#include "tools/simulate/core_scenario.hpp"
#include "tools/simulate/datagram_scenario.hpp"
#include "tools/simulate/event_scenario.hpp"
#include "tools/simulate/page_traffic.hpp"
#include "tools/simulate/pool_scenario.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

Outcome run(sim::World& world, Duration limit = std::chrono::hours(1)) {
  Outcome outcome{.report = world.run_until_done(limit)};
  outcome.trace = world.trace();
  outcome.injected_faults = world.faults().injected();
  return outcome;
}

unsigned some_cores(sim::World& world) {
  return 1 + static_cast<unsigned>(world.random().below(5));
}

using PageService = int (*)(loop::Platform& host, const RuntimeOptions& options,
                            ServedPages& served);

Outcome run_pages(const sim::WorldOptions& options, PageService serve, PageTrafficOptions asks) {
  sim::World world(options);
  const unsigned cores = some_cores(world);
  sim::Host& server = world.host("server", {.cores = cores});
  ServedPages served;
  server.start_service(
      [&, cores](loop::Platform& host) { return serve(host, quiet(cores), served); });
  const bool faults = world.random().bernoulli(0.5);
  asks.server = server.address(80);
  asks.may_fail = faults;
  asks.served = &served;
  PageTraffic traffic(asks);
  world.host("clients").start([&traffic](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  world.check("service", [&served] { return served.violation; });
  world.check("clients", [&traffic] { return traffic.violation(); });
  if (faults) {
    world.faults().rates = {.reset = 0.01,
                            .half_close = 0.01,
                            .stall = 0.01,
                            .full_buffer = 0.01,
                            .accept_failure = 0.05,
                            .stall_max = std::chrono::seconds(2)};
  }
  Outcome outcome = run(world);
  outcome.answered = traffic.answered();
  return outcome;
}

}  // namespace

Outcome with_routes(const sim::WorldOptions& options) {
  return run_pages(options, serve_changing_routes, {});
}

Outcome with_services(const sim::WorldOptions& options) {
  return run_pages(options, serve_changing_services,
                   {.may_be_missing = false, .may_be_stopped = true});
}

/// Runs `Play` on the cores of one host.
template <class Play>
Outcome run_component(const sim::WorldOptions& options, const std::string& name) {
  sim::World world(options);
  const unsigned cores = some_cores(world);
  Play scenario(cores);
  world.host(name, {.cores = cores}).start([&scenario, cores](loop::Platform& host) {
    return Runtime(host, quiet(cores)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.run(scope);
    });
  });
  world.check(name, [&scenario] { return scenario.find_violation(); });
  Outcome outcome = run(world);
  outcome.answered = scenario.done();
  return outcome;
}

Outcome with_cores(const sim::WorldOptions& options) {
  return run_component<CoreScenario>(options, "cores");
}

Outcome with_events(const sim::WorldOptions& options) {
  return run_component<EventScenario>(options, "events");
}

Outcome with_pools(const sim::WorldOptions& options) {
  sim::World world(options);
  const unsigned cores = some_cores(world);
  PoolScenario scenario(PoolScenarioOptions::draw(world.random()), cores);
  world.host("pool", {.cores = cores}).start([&scenario](loop::Platform& host) {
    return scenario.run(host);
  });
  world.always("report", [&scenario] { return scenario.find_wrong_report(); });
  world.check("pool", [&scenario] { return scenario.find_violation(); });
  Outcome outcome = run(world);
  outcome.answered = scenario.done();
  return outcome;
}

Outcome with_client(const sim::WorldOptions& options) {
  sim::World world(options);
  const bool cuts = world.random().bernoulli(0.5);
  ClientScenario scenario(world.random(), {.cut_share = cuts ? 0.2 : 0.0});
  return run_client(world, scenario);
}

Outcome run_client(sim::World& world, ClientScenario& scenario) {
  world.host("server").start_service([&scenario](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.serve(scope);
    });
  });
  world.host("client").start([&scenario](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.ask(scope);
    });
  });
  world.check("client", [&scenario] { return scenario.find_violation(); });
  Outcome outcome = run(world);
  outcome.answered = scenario.answered();
  return outcome;
}

Outcome with_tls(const sim::WorldOptions& options) {
  sim::World world(options);
  const bool faults = world.random().bernoulli(0.5);
  TlsScenario scenario(world.random(), {.cores = some_cores(world),
                                        .mutual = world.random().bernoulli(0.5),
                                        .sets_keys = world.random().bernoulli(0.5),
                                        .may_fail = faults});
  if (faults) {
    world.faults().rates = {.reset = 0.005,
                            .half_close = 0.005,
                            .stall = 0.01,
                            .full_buffer = 0.01,
                            .accept_failure = 0.05,
                            .stall_max = std::chrono::seconds(20)};
  }
  return run_tls(world, scenario);
}

Outcome run_tls(sim::World& world, TlsScenario& scenario) {
  world.host("server", {.cores = scenario.options().cores})
      .start_service([&scenario](loop::Platform& host) { return scenario.serve(host); });
  world.host("client").start([&scenario](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.ask(scope);
    });
  });
  world.check("tls", [&scenario] { return scenario.violation(); });
  Outcome outcome = run(world, std::chrono::hours(24 * 30));
  outcome.answered = scenario.answered();
  return outcome;
}

Outcome with_http2(const sim::WorldOptions& options) {
  sim::World world(options);
  const std::size_t kind = world.random().below(3);
  constexpr std::array cancel_shares{0.01, 0.01, 0.1, 0.5};
  constexpr std::array<std::uint32_t, 4> windows{64 * 1024, 64 * 1024, 3000, 700};
  const std::uint32_t window = world.random().one_of(windows);
  Http2Scenario scenario(world.random(),
                         {.cores = some_cores(world),
                          .cancel_share = world.random().one_of(cancel_shares),
                          .window = kind == 1 ? 64 * 1024 : window,  // a drain ends in time
                          .drains = kind == 1,
                          .may_fail = kind == 2});
  if (scenario.options().may_fail) {
    world.faults().rates = {.reset = 0.002,
                            .half_close = 0.002,
                            .stall = 0.01,
                            .full_buffer = 0.01,
                            .accept_failure = 0.05,
                            .stall_max = std::chrono::seconds(20)};
    if (world.random().bernoulli(0.3)) {
      world.faults().fail_allocation("server", 0, 200 + world.random().below(2000));
    }
  }
  return run_http2(world, scenario);
}

Outcome run_http2(sim::World& world, Http2Scenario& scenario) {
  sim::Host& server = world.host("server", {.cores = scenario.options().cores});
  server.start_service([&scenario](loop::Platform& host) { return scenario.serve(host); });
  world.host("client").start([&scenario, at = server.address(80)](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario, at](Scope& scope) {
      return scenario.ask(scope, at);
    });
  });
  world.check("http2", [&scenario] { return scenario.violation(); });
  if (scenario.options().drains) {
    world.schedule(world.random().between({}, std::chrono::seconds(10)), [&scenario, &server] {
      scenario.on_drain();
      server.raise(loop::Signal::terminate);
    });
  }
  Outcome outcome = run(world);
  outcome.answered = scenario.answered();
  return outcome;
}

/// Runs until the clients of `scenario` are done. Returns what the server has not noticed a minute
/// later, before it is told to stop.
template <class Play>
std::string find_left(sim::World& world, const Play& scenario) {
  constexpr Duration afterwards = std::chrono::minutes(1);
  if (!world.run_until([&scenario] { return scenario.done(); }, std::chrono::hours(1))) {
    return "the clients are not done";
  }
  const Instant end = world.now() + afterwards;
  std::ignore = world.run_until([&world, end] { return world.now() >= end; }, 2 * afterwards);
  const std::size_t open = world.host("server").connections().size();
  return open == 0 ? scenario.find_violation() : std::to_string(open) + " connections are open";
}

Outcome with_http2_cuts(const sim::WorldOptions& options) {
  sim::World world(options);
  Http2CutScenario scenario(world.random(), {.cores = some_cores(world)});
  return run_http2_cuts(world, scenario);
}

/// Runs clients that vanish at each byte against a service. Sets no number of answers.
template <class Service, class Cuts>
Outcome run_cuts(sim::World& world, Service& service, Cuts& scenario, std::string_view name) {
  sim::Host& server = world.host("server", {.cores = service.options().cores});
  server.start_service([&service](loop::Platform& host) { return service.serve(host); });
  world.host("client").start([&scenario, at = server.address(80)](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario, at](Scope& scope) {
      return scenario.ask(scope, at);
    });
  });
  const std::string left = find_left(world, scenario);
  world.check(std::string(name), [&left] { return left; });
  return run(world);
}

Outcome run_http2_cuts(sim::World& world, Http2CutScenario& scenario) {
  Outcome outcome = run_cuts(world, scenario, scenario, "http2 cuts");
  outcome.answered = scenario.complete();
  return outcome;
}

Outcome with_http2_restarts(const sim::WorldOptions& given) {
  sim::WorldOptions options = given;
  constexpr std::array restarts{Http2Restart::handover, Http2Restart::drain, Http2Restart::kill};
  sim::World world(options);
  const Http2Restart restart = world.random().one_of(restarts);
  const bool faults = restart == Http2Restart::kill && world.random().bernoulli(0.5);
  Http2RestartScenario scenario(
      world, {.restart = restart, .cores = some_cores(world), .may_time_out = faults});
  if (faults) {
    world.faults().rates = {.reset = 0.002,
                            .half_close = 0.002,
                            .stall = 0.002,
                            .full_buffer = 0.002,
                            .accept_failure = 0.05,
                            .stall_max = std::chrono::seconds(20)};
  }
  return run_http2_restarts(world, scenario);
}

Outcome run_http2_restarts(sim::World& world, Http2RestartScenario& scenario) {
  scenario.begin();
  world.host("client").start([&scenario](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.ask(scope);
    });
  });
  const std::string left = find_left(world, scenario);
  world.check("http2 restarts", [&left] { return left; });
  Outcome outcome = run(world);
  outcome.answered = scenario.answered();
  return outcome;
}

Outcome with_websockets(const sim::WorldOptions& options) {
  constexpr std::array disturbances{WebSocketDisturbance::none, WebSocketDisturbance::drain,
                                    WebSocketDisturbance::replace, WebSocketDisturbance::faults};
  sim::World world(options);
  const WebSocketScenarioOptions clients{.disturbance = world.random().one_of(disturbances),
                                         .http2 = world.random().bernoulli(0.5)};
  const bool disturbed = clients.disturbance != WebSocketDisturbance::none;
  const bool replaces = clients.disturbance == WebSocketDisturbance::replace;
  WebSocketService service(world.random(), {.cores = some_cores(world),
                                            .messages = replaces ? 1500U : 60U,
                                            .capacity = 1 + world.random().below(8),
                                            .subscribers = disturbed ? 0 : clients.subscribers,
                                            .compressed = world.random().bernoulli(0.3),
                                            .replacements = replaces ? 5U : 0U});
  WebSocketScenario scenario(world.random(), service, clients);
  return run_websockets(world, service, scenario);
}

Outcome run_websockets(sim::World& world, WebSocketService& service, WebSocketScenario& scenario) {
  // Slow subscribers fill their buffers. One connection of HTTP/2 carries all WebSockets.
  const std::size_t buffer_bytes = scenario.options().http2 ? 256 * 1024 : 8192;
  sim::Host& server =
      world.host("server", {.cores = service.options().cores, .buffer_bytes = buffer_bytes});
  server.start_service([&service](loop::Platform& host) { return service.serve(host); });
  world.host("client", {.buffer_bytes = buffer_bytes}).start([&scenario](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&scenario](Scope& scope) {
      return scenario.ask(scope);
    });
  });
  if (scenario.options().disturbance == WebSocketDisturbance::faults) {
    world.faults().rates = {.reset = 0.002,
                            .half_close = 0.002,
                            .stall = 0.01,
                            .full_buffer = 0.01,
                            .accept_failure = 0.05,
                            .stall_max = std::chrono::seconds(20)};
  }
  if (scenario.options().disturbance == WebSocketDisturbance::drain) {
    world.schedule(world.random().between({}, std::chrono::seconds(6)), [&scenario, &server] {
      scenario.on_drain();
      server.raise(loop::Signal::terminate);
    });
  }
  const std::string left = find_left(world, scenario);
  world.check("websockets", [&left] { return left; });
  Outcome outcome = run(world);
  outcome.answered = scenario.answered();
  return outcome;
}

Outcome with_websocket_cuts(const sim::WorldOptions& options) {
  sim::World world(options);
  WebSocketService service(world.random(), {.cores = some_cores(world), .messages = 500});
  WebSocketCutScenario scenario(world.random(), service);
  return run_websocket_cuts(world, service, scenario);
}

Outcome run_websocket_cuts(sim::World& world, WebSocketService& service,
                           WebSocketCutScenario& scenario) {
  Outcome outcome = run_cuts(world, service, scenario, "websocket cuts");
  outcome.answered = scenario.answered();
  return outcome;
}

Outcome with_datagrams(const sim::WorldOptions& options) {
  sim::World world(options);
  const unsigned cores = some_cores(world);
  sim::Host& server = world.host("server", {.cores = cores});
  server.start_service([cores](loop::Platform& host) {
    return Runtime(host, quiet(cores)).run_on_each_core(echo_datagrams, Endpoint::any(7));
  });
  std::array<DatagramScenario, 2> plays;
  for (std::size_t number = 0; number < plays.size(); ++number) {
    DatagramScenario& scenario = plays[number];
    sim::Host& client = world.host("client " + std::to_string(number));
    client.start([&scenario, to = server.address(7)](loop::Platform& host) {
      return Runtime(host, quiet(1)).run_on_each_core([&scenario, to](Scope& scope) {
        return scenario.run(scope, to);
      });
    });
    world.check(client.name(), [&scenario] { return scenario.find_violation(); });
    const Duration cut = world.random().between({}, std::chrono::seconds(3));
    world.schedule(cut, [&world, &server, &client] { world.partition(server, client); });
    const Duration healed = world.random().between({}, std::chrono::seconds(3));
    world.schedule(cut + healed, [&world, &server, &client] { world.heal(server, client); });
  }
  world.faults().rates.loss = 0.2;
  world.faults().rates.doubling = 0.2;
  Outcome outcome = run(world);
  for (const DatagramScenario& scenario : plays) outcome.answered += scenario.answered();
  return outcome;
}

}  // namespace weir::simulate
