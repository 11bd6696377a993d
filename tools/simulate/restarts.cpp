#include "tools/simulate/restarts.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/simulate/one_shot_clients.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/http/serve.hpp"

namespace weir::simulate {
namespace {

constexpr Duration first_restart = std::chrono::milliseconds(400);
constexpr Duration between_max = std::chrono::milliseconds(1500);
constexpr Duration careless_pause = std::chrono::seconds(1);
// Longer than a handover takes in a World, which draws how late its threads are.
constexpr Duration afterwards = std::chrono::seconds(8);

int serve(Host& host, std::size_t process, unsigned cores, bool takes_over) {
  http::Router routes;
  add_visited_route(routes, process);
  RuntimeOptions options{.cores = cores, .announce = false};
  if (takes_over) options.takeover = HandoverOptions{"/run/service", "service"};
  return Runtime(host, options).run_on_each_core(http::serve, std::cref(routes), Endpoint::any(80));
}

/// The processes of the machine, and what the death of one of them excuses.
class Processes {
 public:
  Processes(World& world, const RestartRun& run) : world_(world), run_(run) {
    for (std::size_t number = 0; number < run.processes; ++number) {
      const WorldHostOptions options{.cores = 1 + world.draw().below(3)};
      cores_.push_back(static_cast<unsigned>(options.cores));
      const std::string name = "process " + std::to_string(number);
      processes_.push_back(number == 0 ? &world.host(name, options)
                                       : &world.process(*processes_.front(), name, options));
    }
  }

  Endpoint address() const { return processes_.front()->address(80); }
  /// Plans when each begins; gives when the last one does.
  Duration begin() {
    start(0);
    Duration moment = first_restart;
    for (std::size_t number = 1; number < processes_.size(); ++number) {
      moment += world_.draw().between({}, between_max);
      if (run_.careless) moment += careless_pause;  // its predecessor has begun
      world_.at(moment, [this, number] {
        if (!run_.careless) return start(number);
        processes_[number - 1]->raise(Signal::terminate);
        world_.at(careless_pause, [this, number] { start(number); });
      });
    }
    if (run_.death && run_.death->moment) {
      world_.at(*run_.death->moment, [this] { processes_[run_.death->process]->kill(); });
    }
    return moment;
  }
  /// For World::always(): notes what a death means.
  std::string look() {
    if (!run_.death) return {};
    const WorldHost& dead = *processes_[run_.death->process];
    if (!dead.killed()) return {};
    const bool served = std::ranges::any_of(
        processes_, [&](const WorldHost* each) { return each != &dead && owns_sockets(*each); });
    if (!std::exchange(died_, true) && !served) begin_outage();
    // Until the last one has left them, newcomers may still wait at the old sockets.
    const bool all_left = std::ranges::none_of(
        processes_, [](const WorldHost* each) { return each->listens() && !owns_sockets(*each); });
    if (served && all_left) outage_ends_ = std::min(outage_ends_, world_.now());
    return {};
  }
  bool is_excused(const Visit& visit) const {
    if (!died_) return false;
    if (is_among(visit, processes_[run_.death->process]->lost())) return true;
    if (is_among(visit, unharmed_)) return false;
    return visit.ended >= outage_begins_ && visit.begun <= outage_ends_;
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> steps;
    for (const WorldHost* each : processes_) steps.push_back(each->handover_steps());
    return steps;
  }
  bool outage() const noexcept { return outage_begins_ != never; }
  /// Even if it was so late that nobody has looked since.
  bool died() const noexcept { return run_.death && processes_[run_.death->process]->killed(); }

 private:
  void start(std::size_t number) {
    processes_[number]->start_service(
        [this, number](Host& host) { return serve(host, number, cores_[number], !run_.careless); });
    const bool dies = run_.death && run_.death->process == number && !run_.death->moment;
    if (dies) processes_[number]->kill_at_handover_step(run_.death->step);
  }

  static bool is_among(const Visit& visit, const std::vector<WorldConnection>& connections) {
    return std::ranges::find(connections, visit.local, &WorldConnection::peer) != connections.end();
  }

  void begin_outage() {
    outage_begins_ = world_.now();
    for (const WorldHost* each : processes_) {
      if (each->killed()) continue;
      const std::vector<WorldConnection> theirs = each->connections();
      unharmed_.insert(unharmed_.end(), theirs.begin(), theirs.end());
    }
  }

  /// Whether it serves who waits at its sockets, or will.
  static bool owns_sockets(const WorldHost& process) {
    const bool gave_them_away = std::ranges::any_of(process.logged(), [](const std::string& line) {
      return line.find("a newer process has taken over") != line.npos;
    });
    return !process.killed() && process.listens() && !gave_them_away;
  }

  World& world_;
  const RestartRun& run_;
  std::vector<unsigned> cores_;
  std::vector<WorldHost*> processes_;
  bool died_ = false;
  Instant outage_begins_ = never;          // nobody else had its sockets
  std::vector<WorldConnection> unharmed_;  // what others had accepted by then
  Instant outage_ends_ = never;
};

}  // namespace

RestartOutcome run_restarts(const WorldOptions& given, const RestartRun& run) {
  WorldOptions options = given;
  // A server that drains closes a connection on which it has waited for 100 ms for one more
  // request: what is on its way for longer may be met by that end (RFC 9112 §9.3), as no client
  // could tell from a request that was lost.
  options.variation.slow_parcel_max = std::chrono::milliseconds(60);
  World world(options);
  Processes processes(world, run);
  Visitors visitors({.server = processes.address()});
  world.host("visitors").start([&visitors](Host& host) {
    return Runtime(host, {.cores = 1, .announce = false}).run_on_each_core([&](Scope& scope) {
      return visitors.run(scope);
    });
  });
  const Duration last = processes.begin();
  world.at(last + afterwards, [&visitors] { visitors.stop(); });
  world.always("processes", [&processes] { return processes.look(); });
  world.check("visitors", [&] {
    return visitors.find_fault([&](const Visit& visit) { return processes.is_excused(visit); });
  });
  RestartOutcome all{.outcome = {.report = world.run_until_done(std::chrono::hours(1))}};
  all.outcome.trace = world.trace();
  all.outcome.answered = visitors.answered();
  all.outcome.struck = processes.died() ? 1 : 0;
  all.steps = processes.steps();
  all.outage = processes.outage();
  all.served_by_newer = visitors.answered_by_newer();
  return all;
}

Outcome with_restarts(const WorldOptions& options) {
  return run_restarts(options, {}).outcome;
}

/// At a step of a handover, or at any moment.
Outcome with_deaths(const WorldOptions& options) {
  WorldOptions before = options;
  before.trace = false;
  const RestartOutcome without = run_restarts(before, {});
  if (!without.outcome.report.ok()) return run_restarts(options, {}).outcome;
  WorldDraw draw(~options.seed);
  RestartDeath death{.process = draw.below(without.steps.size())};
  if (draw.happens(0.3)) {
    death.moment = draw.between({}, std::chrono::seconds(5));
  } else {
    death.step = draw.below(without.steps[death.process] + 1);
  }
  return run_restarts(options, {.death = death}).outcome;
}

}  // namespace weir::simulate
