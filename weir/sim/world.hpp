// The World: simulated machines on which programs run as they are, in virtual time, all that can
// vary drawn from one seed, faults included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/sim/host.hpp"
#include "weir/testing/world_links.hpp"
#include "weir/testing/world_state.hpp"

namespace weir {

/// What was wrong in the end; nothing, mostly.
struct WorldReport {
  std::uint64_t seed;
  std::vector<std::string> failures;
  std::string replay;  ///< how to see it again

  bool ok() const noexcept { return failures.empty(); }
  /// A line for each failure, the seed, and how to replay it.
  std::string text() const;
};

/// Several hosts, a network between them, and one clock that moves when nobody has anything left
/// to do. For one binary the same seed gives the same run, to the last bit.
///
///   World world({.seed = seed});
///   WorldHost& server = world.host("server", {.cores = 2});
///   server.start_service(serve);  // int serve(Host& host), which makes a Runtime there
///   world.host("client").start(ask);
///   const WorldReport report = world.run_until_done(1h);
///   EXPECT_TRUE(report.ok()) << report.text();
///
/// All loops of all hosts are turned by the thread that calls run_until_done(), one after the
/// other in an order that is drawn. Functions given to a blocking pool are called between turns, at
/// a drawn moment; one that waits for another is not supported, see WorldWatch.
///
/// When all is done, no block of a pool, timer, operation, descriptor or thread may be left, and
/// every main must have returned 0; further checks can be added.
/// Threads: one. Lifetime: outlives what the main functions refer to; run to its end before it
/// goes.
class World {
 public:
  explicit World(const WorldOptions& options = {});
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  std::uint64_t seed() const noexcept { return seed_; }
  /// The host of that name, made by the first call. All hosts know each other by these names, where
  /// they are such as DNS allows, from their /etc/hosts; they know no name server.
  WorldHost& host(const std::string& name, const WorldHostOptions& options = {});
  /// One more process of that machine, made by the first call: its ports are the same, so that it
  /// can take over from another; see RuntimeOptions::takeover.
  WorldHost& process(WorldHost& machine, const std::string& name,
                     const WorldHostOptions& options = {});
  Instant now() const noexcept { return state_.clock.now(); }
  /// For choices of the test's own.
  WorldDraw& draw() noexcept { return state_.draw; }

  // What goes wrong.

  WorldFaults& faults() noexcept { return state_.faults; }
  /// Nothing gets from one to the other, in both directions, until heal(); what is sent meanwhile
  /// is sent again and again, as TCP does it, and given up after a quarter of an hour; datagrams
  /// are lost.
  void cut(WorldHost& one, WorldHost& other) { set_open(one, other, false); }
  void heal(WorldHost& one, WorldHost& other) { set_open(one, other, true); }
  /// From now on what travels between them takes so much longer.
  void slow_down(WorldHost& one, WorldHost& other, Duration extra);
  /// All clocks jump ahead, as if every machine had been suspended: what should have happened
  /// meanwhile is late.
  void jump(Duration length);
  /// Calls `event` between turns, so long after this call; it may do all of the above.
  void at(Duration later, std::function<void()> event);

  // What must hold.

  /// `find_fault` gives what is wrong, or an empty text: at the end,
  void check(std::string name, std::function<std::string()> find_fault);
  /// or after every turn of any core; it is not asked again once something was wrong. What it, or
  /// an event, throws is a failure, too.
  void always(std::string name, std::function<std::string()> find_fault);

  /// Runs until the main functions of all hosts have returned, but ends everything that still runs
  /// after `limit` of virtual time, which is a failure, as it is if all wait for what will never
  /// happen.
  [[nodiscard]] WorldReport run_until_done(Duration limit);
  /// What happened, if the options asked for it; see WorldTrace.
  const std::string& trace() const noexcept { return state_.trace.text(); }

 private:
  struct Check {
    std::string name;
    std::function<std::string()> find_fault;
    bool failed = false;
  };

  WorldHost* find(const std::string& name) const;
  void make_known(WorldHost& made);
  void set_open(WorldHost& one, WorldHost& other, bool open);
  bool all_done() const;
  bool go_on(WorldHost& host);
  bool rests(const WorldHost& host, const WorldHost::Core& core) const;
  bool turn_one();
  void turn(WorldHost& host, WorldHost::Core& core);
  void note_turn(const std::string& place);
  void tell_services();
  Instant next_moment() const;
  void give_up(std::string why);
  void ask(std::vector<Check>& checks);
  void failed(std::string what) { failures_.push_back(std::move(what)); }

  std::uint64_t seed_;
  std::string replay_;
  std::uint64_t steps_at_once_max_;
  std::uint64_t steps_ = 0;  // at this moment
  WorldState state_;
  WorldLinks links_;
  std::vector<std::unique_ptr<WorldHost>> hosts_;
  std::string hosts_file_ = "127.0.0.1 localhost\n::1 localhost\n";
  std::vector<Check> at_end_;
  std::vector<Check> always_;
  std::vector<std::string> failures_;
  bool given_up_ = false;
  // For the trace: of all turns so far.
  std::uint64_t turns_ = 0;
  std::uint64_t turns_hash_ = 0;
};

}  // namespace weir
