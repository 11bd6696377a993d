// The World runs unchanged programs on simulated machines in virtual time. One seed determines
// everything that can vary, including faults.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/sim/detail/world_state.hpp"
#include "weir/sim/host.hpp"

namespace weir::sim {

/// The result of a World run.
struct WorldReport {
  std::uint64_t seed;
  std::vector<std::string> failures;
  std::string replay;  ///< the command that repeats the run

  bool ok() const noexcept { return failures.empty(); }
  /// Returns one line for each failure, then the seed and the replay command.
  std::string text() const;
};

/// A World contains several simulated hosts, the network between them, and one virtual clock. The
/// clock moves when no host has work left. The wall clocks of all hosts show the same time. The
/// same seed gives the same run, to the last bit, with the same binary.
///
///     World world({.seed = seed});
///     Host& server = world.host("server", {.cores = 2});
///     server.start_service(serve);  // int serve(Platform& host), which makes a Runtime there
///     world.host("client").start(ask);
///     const WorldReport report = world.run_until_done(1h);
///     EXPECT_TRUE(report.ok()) << report.text();
///
/// The thread that calls run_until_done() turns all loops of all hosts, one after another, in
/// random order. It calls the functions given to a blocking pool between turns, at a random
/// moment. A function that waits for another one is not supported; see BlockingCallDetector.
///
/// A run fails if it leaves a pool block, timer, operation, descriptor or thread behind, or if a
/// main does not return 0. Tests can add further checks.
///
/// TLS uses OpenSSL with random numbers from the seed, and virtual time for certificates and
/// tickets, so that its bytes are the same in each run too. This holds for certificates and keys
/// that the test makes while the World exists.
/// Threads: one.
/// Lifetime: objects that the main functions use live until run_until_done() returns. The World
/// is destroyed after that.
class World {
 public:
  explicit World(const WorldOptions& options = {});
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  std::uint64_t seed() const noexcept { return seed_; }
  /// Returns the host of that name; the first call creates it. The /etc/hosts of each host
  /// contains the names of all hosts, except for names that DNS does not allow. The hosts have no
  /// name server.
  Host& host(const std::string& name, const HostOptions& options = {});
  /// Returns the process of that name on `machine`; the first call creates it. The processes of a
  /// machine share its ports, so a process can take over from another one; see
  /// RuntimeOptions::hot_restart.
  Host& process(Host& machine, const std::string& name, const HostOptions& options = {});
  Instant now() const noexcept { return state_.clock.now(); }
  /// Returns the random numbers of the run, for choices that the test makes itself.
  Random& random() noexcept { return state_.random; }

  // Faults.

  FaultInjector& faults() noexcept { return state_.faults; }
  /// Cuts the network between `one` and `other` in both directions until heal(). TCP retransmits
  /// the data that is sent meanwhile and gives up after about a quarter of an hour. Datagrams are
  /// lost.
  void partition(Host& one, Host& other);
  /// Does what partition() does, but only for the data from `from` to `to`. No connect succeeds
  /// between them in any direction, because it needs both. Data from `to` still arrives; the World
  /// does not simulate that its acknowledgements are lost.
  void partition_one_way(Host& from, Host& to);
  /// Ends what partition() and partition_one_way() began, in both directions.
  void heal(Host& one, Host& other);
  /// Pauses the program of `host` for `length`, as SIGSTOP does: no core and no thread of the
  /// program runs. Its clocks go on, so timers are late. The network goes on too: data arrives and
  /// waits, and connections wait to be accepted. A later call replaces the end of the pause. kill()
  /// ends it.
  void pause(Host& host, Duration length);
  /// Adds the delay `extra` to all data that `one` and `other` send to each other from now on. The
  /// handshake of a connect takes no longer. A later call replaces the delay.
  void slow_down(Host& one, Host& other, Duration extra);
  /// Moves all clocks ahead by `length`, as if every machine had been suspended. Everything that
  /// was due meanwhile is late.
  void jump(Duration length);
  /// Calls `event` between turns, `later` after this call. The event may call all of the
  /// functions above. An exception from it is a failure of the run.
  void schedule(Duration later, std::function<void()> event);

  // Checks.

  /// Adds a check that runs at the end of each run. `find_violation` returns a description of the
  /// violation, or an empty text. An exception from it is a failure of the run too.
  void check(std::string name, std::function<std::string()> find_violation);
  /// Adds a check that runs after every turn of any core until it has failed once.
  /// `find_violation` is as in check().
  void always(std::string name, std::function<std::string()> find_violation);

  /// Runs until the main functions of all hosts have returned. The run fails if `limit` of
  /// virtual time passes first, or if every host waits for an event that can never happen. The
  /// World then cancels everything that still runs.
  [[nodiscard]] WorldReport run_until_done(Duration limit);
  /// Runs until `done` returns true; the next call continues. It stops no service and makes no
  /// check. A test can thus look at the programs in between; run_until_done() ends the run.
  /// Returns: false if `limit` of virtual time passes first, if every host waits for an event that
  /// can never happen, or after WorldOptions::steps_per_instant_max.
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration limit);
  /// Returns true if no main runs and none waits to be started.
  bool done() const;
  /// Returns the trace of the run. Empty unless WorldOptions::trace is true; see Trace.
  const std::string& trace() const noexcept { return state_.trace.text(); }

 private:
  struct Check {
    std::string name;
    std::function<std::string()> find_violation;
    bool failed = false;
  };

  Host* find(const std::string& name) const;
  void add_to_hosts_files(Host& made);
  bool step();
  bool livelocked() const noexcept { return steps_ > steps_per_instant_max_; }
  bool resume_main(Host& host);
  bool is_paused(const Host& host, const Host::Core& core) const;
  bool run_one_turn();
  void turn(Host& host, Host::Core& core);
  void hash_turn(const std::string& place);
  void stop_services();
  Instant next_event_time() const;
  void abort_run(std::string why);
  void run_checks(std::vector<Check>& checks);
  void add_failure(std::string what) { failures_.push_back(std::move(what)); }

  std::uint64_t seed_;
  std::string replay_;
  std::uint64_t steps_per_instant_max_;
  std::uint64_t steps_ = 0;     // at the moment of the last step
  Instant moment_{};            // of the last step
  bool services_stay_ = false;  // during run_until()
  bool stop_is_due_ = false;    // run_until() has put off stop_services()
  WorldState state_;
  weir::detail::RandomSource::Use library_random_{state_.library_random};  // while a test prepares
  Links links_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::string hosts_file_ = "127.0.0.1 localhost\n::1 localhost\n";
  std::vector<Check> at_end_;
  std::vector<Check> always_;
  std::vector<std::string> failures_;
  bool aborted_ = false;
  // Number and hash of all turns so far, for the trace.
  std::uint64_t turns_ = 0;
  std::uint64_t turns_hash_ = 0;
};

}  // namespace weir::sim
