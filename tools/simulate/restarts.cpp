// The processes of a service that is restarted, and the failures that a death excuses.
#include "tools/simulate/restarts.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/simulate/one_shot_clients.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

constexpr Duration first_restart = std::chrono::milliseconds(400);
constexpr Duration between_max = std::chrono::milliseconds(1500);
constexpr Duration careless_pause = std::chrono::seconds(1);
// Longer than a handover takes in a World, which chooses the delays of its threads.
constexpr Duration afterwards = std::chrono::seconds(8);

int serve(loop::Platform& host, std::size_t process, unsigned cores, bool takes_over) {
  http::Router routes;
  add_process_id_route(routes, process);
  RuntimeOptions options{.cores = cores, .announce = false};
  if (takes_over) options.hot_restart = HandoverOptions{"/run/service", "service"};
  return Runtime(host, options)
      .run_on_each_core(http::serve, std::cref(routes), http::ServeOptions{Endpoint::any(80)});
}

/// The processes of the machine, and the failures that the death of one process excuses.
class Processes {
 public:
  Processes(sim::World& world, const RestartRun& run) : world_(world), run_(run) {
    for (std::size_t number = 0; number < run.processes; ++number) {
      const sim::HostOptions options{.cores = 1 + world.random().below(3)};
      cores_.push_back(static_cast<unsigned>(options.cores));
      const std::string name = "process " + std::to_string(number);
      processes_.push_back(number == 0 ? &world.host(name, options)
                                       : &world.process(*processes_.front(), name, options));
    }
    drains_from_.assign(run.processes, never);
  }

  Endpoint address() const { return processes_.front()->address(80); }
  /// Plans when each process begins.
  /// Returns: the time at which the last one begins.
  Duration begin() {
    start(0);
    Duration moment = first_restart;
    for (std::size_t number = 1; number < processes_.size(); ++number) {
      moment += world_.random().between({}, between_max);
      if (run_.without_handover) moment += careless_pause;  // the predecessor has begun
      world_.schedule(moment, [this, number] {
        if (!run_.without_handover) return start(number);
        processes_[number - 1]->raise(loop::Signal::terminate);
        world_.schedule(careless_pause, [this, number] { start(number); });
      });
    }
    if (run_.kill && run_.kill->moment) {
      world_.schedule(*run_.kill->moment, [this] { processes_[run_.kill->process]->kill(); });
    }
    return moment;
  }
  /// Checks between turns whether a process has died, and what that excuses. It is for
  /// sim::World::always().
  std::string look() {
    for (std::size_t number = 0; number < processes_.size(); ++number) {
      if (drains_from_[number] == never && logs_drain(*processes_[number])) {
        drains_from_[number] = world_.now();
      }
    }
    if (!run_.kill) return {};
    const sim::Host& dead = *processes_[run_.kill->process];
    if (!dead.killed()) return {};
    const bool served = std::ranges::any_of(
        processes_, [&](const sim::Host* each) { return each != &dead && owns_sockets(*each); });
    if (!std::exchange(died_, true) && !served) begin_outage();
    // New connections may wait at the old sockets until the last process has closed them.
    const bool all_left = std::ranges::none_of(
        processes_, [](const sim::Host* each) { return each->listens() && !owns_sockets(*each); });
    if (served && all_left) outage_ends_ = std::min(outage_ends_, world_.now());
    return {};
  }
  bool is_tolerated(const OneShotConnection& connection) const {
    if (connection.closed_by && connection.ended >= drains_from_[*connection.closed_by]) {
      return true;
    }
    if (!died_) return false;
    if (is_among(connection, processes_[run_.kill->process]->lost())) return true;
    if (is_among(connection, unharmed_)) return false;
    return connection.ended >= outage_begins_ && connection.begun <= outage_ends_;
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> steps;
    for (const sim::Host* each : processes_) steps.push_back(each->handover_steps());
    return steps;
  }
  bool outage() const noexcept { return outage_begins_ != never; }
  /// Returns true if a process has died, even if it died after the last look().
  bool died() const noexcept { return run_.kill && processes_[run_.kill->process]->killed(); }

 private:
  void start(std::size_t number) {
    processes_[number]->start_service([this, number](loop::Platform& host) {
      return serve(host, number, cores_[number], !run_.without_handover);
    });
    const bool dies = run_.kill && run_.kill->process == number && !run_.kill->moment;
    if (dies) processes_[number]->kill_at_handover_step(run_.kill->step);
  }

  static bool is_among(const OneShotConnection& connection,
                       const std::vector<sim::ConnectionInfo>& connections) {
    return std::ranges::find(connections, connection.local, &sim::ConnectionInfo::peer) !=
           connections.end();
  }

  static bool logs_drain(const sim::Host& process) {
    return std::ranges::any_of(
        process.logged(), [](const std::string& line) { return line.ends_with(": draining"); });
  }

  void begin_outage() {
    outage_begins_ = world_.now();
    for (const sim::Host* each : processes_) {
      if (each->killed()) continue;
      const std::vector<sim::ConnectionInfo> theirs = each->connections();
      unharmed_.insert(unharmed_.end(), theirs.begin(), theirs.end());
    }
  }

  /// Returns true if the process serves or will serve the connections that wait at its sockets.
  static bool owns_sockets(const sim::Host& process) {
    const bool gave_them_away = std::ranges::any_of(process.logged(), [](const std::string& line) {
      return line.find("a newer process has taken over") != line.npos;
    });
    return !process.killed() && process.listens() && !gave_them_away;
  }

  sim::World& world_;
  const RestartRun& run_;
  std::vector<unsigned> cores_;
  std::vector<sim::Host*> processes_;
  std::vector<Instant> drains_from_;  // `never`: the process does not drain
  bool died_ = false;
  Instant outage_begins_ = never;              // no other process had the sockets from here on
  std::vector<sim::ConnectionInfo> unharmed_;  // connections that others had accepted by then
  Instant outage_ends_ = never;
};

}  // namespace

RestartOutcome run_restarts(const sim::WorldOptions& given, const RestartRun& run) {
  sim::WorldOptions options = given;
  // A draining server closes a connection after it has waited 100 ms for another request. Such a
  // close can meet data that is in flight for longer (RFC 9112 §9.3). A client cannot distinguish
  // this from a lost request.
  options.jitter.slow_segment_max = std::chrono::milliseconds(60);
  sim::World world(options);
  Processes processes(world, run);
  OneShotClients clients({.server = processes.address()});
  world.host("clients").start([&clients](loop::Platform& host) {
    return Runtime(host, {.cores = 1, .announce = false}).run_on_each_core([&](Scope& scope) {
      return clients.run(scope);
    });
  });
  const Duration last = processes.begin();
  world.schedule(last + afterwards, [&clients] { clients.stop(); });
  world.always("processes", [&processes] { return processes.look(); });
  world.check("clients", [&] {
    return clients.find_violation(
        [&](const OneShotConnection& connection) { return processes.is_tolerated(connection); });
  });
  RestartOutcome all{.outcome = {.report = world.run_until_done(std::chrono::hours(1))}};
  all.outcome.trace = world.trace();
  all.outcome.answered = clients.answered();
  all.outcome.injected_faults = processes.died() ? 1 : 0;
  all.steps = processes.steps();
  all.outage = processes.outage();
  all.served_by_newer = clients.answered_by_newer();
  return all;
}

Outcome with_restarts(const sim::WorldOptions& options) {
  return run_restarts(options, {}).outcome;
}

/// Kills one process at a step of a handover, or at any time.
Outcome with_kills(const sim::WorldOptions& options) {
  sim::WorldOptions before = options;
  before.trace = false;
  const RestartOutcome without = run_restarts(before, {});
  if (!without.outcome.report.ok()) return run_restarts(options, {}).outcome;
  sim::Random random(~options.seed);
  ProcessKill kill{.process = random.below(without.steps.size())};
  if (random.bernoulli(0.3)) {
    kill.moment = random.between({}, std::chrono::seconds(5));
  } else {
    kill.step = random.below(without.steps[kill.process] + 1);
  }
  return run_restarts(options, {.kill = kill}).outcome;
}

}  // namespace weir::simulate
