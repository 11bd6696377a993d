#include "tools/simulate/play_scenarios.hpp"

#include <array>
#include <functional>
#include <memory>

#include "tools/simulate/changing_pages.hpp"
#include "tools/simulate/core_scenario.hpp"
#include "tools/simulate/datagram_scenario.hpp"
#include "tools/simulate/event_scenario.hpp"
#include "tools/simulate/page_traffic.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

constexpr Duration limit = std::chrono::hours(1);

RuntimeOptions quiet(unsigned cores) {
  return {.cores = cores, .announce = false};
}

Outcome run(World& world) {
  Outcome outcome{.report = world.run_until_done(limit)};
  outcome.trace = world.trace();
  outcome.struck = world.faults().struck();
  return outcome;
}

unsigned some_cores(World& world) {
  return 1 + static_cast<unsigned>(world.draw().below(5));
}

using PageService = int (*)(Host& host, const RuntimeOptions& options, std::string& fault);

Outcome run_pages(const WorldOptions& options, PageService serve, PageTrafficOptions asks) {
  World world(options);
  const unsigned cores = some_cores(world);
  WorldHost& server = world.host("server", {.cores = cores});
  std::string fault;
  server.start_service([&, cores](Host& host) { return serve(host, quiet(cores), fault); });
  asks.server = server.address(80);
  PageTraffic traffic(asks);
  world.host("clients").start([&traffic](Host& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  world.check("service", [&fault] { return fault; });
  world.check("clients", [&traffic] { return traffic.fault(); });
  if (world.draw().happens(0.5)) {
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

Outcome with_routes(const WorldOptions& options) {
  return run_pages(options, serve_changing_routes, {});
}

Outcome with_services(const WorldOptions& options) {
  return run_pages(options, serve_changing_services,
                   {.may_be_missing = false, .may_be_stopped = true});
}

/// `Play` on the cores of one host.
template <class Play>
Outcome run_play(const WorldOptions& options, const std::string& name) {
  World world(options);
  const unsigned cores = some_cores(world);
  Play play(cores);
  world.host(name, {.cores = cores}).start([&play, cores](Host& host) {
    return Runtime(host, quiet(cores)).run_on_each_core([&play](Scope& scope) {
      return play.run(scope);
    });
  });
  world.check(name, [&play] { return play.find_fault(); });
  Outcome outcome = run(world);
  outcome.answered = play.done();
  return outcome;
}

Outcome with_cores(const WorldOptions& options) {
  return run_play<CorePlay>(options, "cores");
}

Outcome with_events(const WorldOptions& options) {
  return run_play<EventPlay>(options, "events");
}

Outcome with_datagrams(const WorldOptions& options) {
  World world(options);
  const unsigned cores = some_cores(world);
  WorldHost& server = world.host("server", {.cores = cores});
  server.start_service([cores](Host& host) {
    return Runtime(host, quiet(cores)).run_on_each_core(echo_datagrams, Endpoint::any(7));
  });
  std::array<DatagramPlay, 2> plays;
  for (std::size_t number = 0; number < plays.size(); ++number) {
    DatagramPlay& play = plays[number];
    WorldHost& client = world.host("client " + std::to_string(number));
    client.start([&play, to = server.address(7)](Host& host) {
      return Runtime(host, quiet(1)).run_on_each_core([&play, to](Scope& scope) {
        return play.run(scope, to);
      });
    });
    world.check(client.name(), [&play] { return play.find_fault(); });
    const Duration cut = world.draw().between({}, std::chrono::seconds(3));
    world.at(cut, [&world, &server, &client] { world.cut(server, client); });
    const Duration healed = world.draw().between({}, std::chrono::seconds(3));
    world.at(cut + healed, [&world, &server, &client] { world.heal(server, client); });
  }
  world.faults().rates.loss = 0.2;
  world.faults().rates.doubling = 0.2;
  Outcome outcome = run(world);
  for (const DatagramPlay& play : plays) outcome.answered += play.answered();
  return outcome;
}

}  // namespace weir::simulate
