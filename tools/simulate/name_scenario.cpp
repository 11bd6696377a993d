// The World of a client, its name servers, and the hosts that it connects to.
#include "tools/simulate/name_scenario.hpp"

#include <memory>
#include <string>
#include <vector>

#include "tools/simulate/name_clients.hpp"
#include "tools/simulate/name_server.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t service_count = 3;

/// Returns jitter with which messages and reads of files take a few milliseconds only, so that the
/// client can predict moments.
sim::JitterOptions exact_jitter() {
  sim::JitterOptions jitter;
  jitter.late_turn = 0;
  jitter.slow_segment = 0;
  jitter.step_max = std::chrono::milliseconds(1);
  return jitter;
}

/// Loses datagrams, and cuts one server off for a time.
void disturb(sim::World& world, sim::Host& server, sim::Host& client) {
  world.faults().rates.loss = 0.1;
  world.faults().rates.doubling = 0.1;
  const Duration cut = world.random().between({}, std::chrono::seconds(30));
  world.schedule(cut, [&world, &server, &client] { world.partition(server, client); });
  const Duration healed = world.random().between({}, std::chrono::seconds(30));
  world.schedule(cut + healed, [&world, &server, &client] { world.heal(server, client); });
}

}  // namespace

Outcome run_names(const sim::WorldOptions& options, const NameRun& run) {
  sim::WorldOptions its = options;
  if (run.exact) its.jitter = exact_jitter();
  sim::World world(its);
  NameSettings settings = NameSettings::draw(world.random());
  NameClientOptions client_options;
  client_options.exact = run.exact;
  sim::Host& client = world.host("client");
  std::vector<sim::Host*> servers;
  for (std::size_t number = 0; number < settings.servers; ++number) {
    servers.push_back(&world.host("names " + std::to_string(number)));
    client_options.servers.push_back(servers.back()->address(0));
    client_options.targets.push_back({servers.back()->address(0), ""});
  }
  for (std::size_t number = 0; number < service_count; ++number) {
    const std::string name = "service " + std::to_string(number);
    sim::Host& service = world.host(name);
    client_options.targets.push_back({service.address(0), name});
    service.start_service([name](loop::Platform& host) {
      return Runtime(host, quiet(1)).run_on_each_core([&name](Scope& scope) -> Task<> {
        scope.spawn(serve_label(scope, service_port, name));
        scope.spawn(serve_label(scope, remote_service_port, name));
        co_return;
      });
    });
  }
  client_options.own_label = "own service";
  world.process(client, "own service").start_service([](loop::Platform& host) {
    return Runtime(host, quiet(1))
        .run_on_each_core(serve_label, service_port, std::string("own service"));
  });

  ZoneOptions zone_options{.only_right_answers = !run.exact};
  for (const NameTarget& each : client_options.targets) zone_options.ipv4.push_back(each.address);
  const Zone zone = Zone::draw(world.random(), zone_options);
  if (world.random().bernoulli(0.7)) settings.search = zone.domains;
  Zone served = zone;
  if (run.change) run.change(served);
  QueryLog log;
  std::vector<std::unique_ptr<NameServer>> name_servers;
  for (std::size_t number = 0; number < servers.size(); ++number) {
    NameServer& server =
        *name_servers.emplace_back(std::make_unique<NameServer>(served, number, log));
    servers[number]->start_service([&server](loop::Platform& host) {
      return Runtime(host, quiet(1)).run_on_each_core([&server](Scope& scope) {
        return server.run(scope);
      });
    });
  }
  NameClient names(zone, settings, log, client_options);
  client.start([&names](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&names](Scope& scope) {
      return names.run(scope);
    });
  });
  if (!run.exact) disturb(world, *servers.front(), client);
  world.check("names", [&names] { return names.find_violation(); });
  Outcome outcome{.report = world.run_until_done(std::chrono::hours(24))};
  outcome.trace = world.trace();
  outcome.injected_faults = world.faults().injected();
  outcome.answered = names.answered();
  return outcome;
}

Outcome with_names(const sim::WorldOptions& options) {
  // Uses a different seed than the World, which exists only inside of the run.
  sim::Random random(~options.seed);
  return run_names(options, {.exact = random.bernoulli(0.75)});
}

}  // namespace weir::simulate
