// One machine of a World: the contract of Host, a main function, and what tests do to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/world_chance.hpp"
#include "weir/sim/detail/host_main.hpp"
#include "weir/testing/world_place.hpp"
#include "weir/testing/world_run.hpp"

namespace weir {

struct WorldHostOptions {
  std::size_t cores = 1;
  std::size_t buffer_bytes = 64 * 1024;  ///< of each direction of a connection, at most
  std::size_t descriptors_max = 1 << 20;
  MemoryFiles files = MemoryFiles::by_backend;
};

/// A connection as the host that has it open knows it.
struct WorldConnection {
  Endpoint peer;
  std::uint64_t received = 0;  ///< bytes that the program has been given
};

/// What a main function is given; it makes a Runtime on it and returns what that returns.
using WorldMainFunction = std::function<int(Host&)>;

/// Made by World::host() and World::process(). Its main runs programs as they are: a Runtime's
/// loops are turned by the World. A loop that is turned by hand is not supported: whoever waits on
/// it ends the program with a line that says so. Threads: one at a time, as the World sees to.
/// Lifetime: the World's.
class WorldHost final : public MemoryHost {
 public:
  /// Its address, whatever the port, is 10.0.0.0 and `number` + 1, which is below 2^24.
  WorldHost(WorldState& state, std::string name, unsigned number, const WorldHostOptions& options);
  /// One more process of that machine: its address and ports, descriptors and files of its own.
  WorldHost(WorldState& state, std::string name, WorldHost& machine,
            const WorldHostOptions& options);
  ~WorldHost() override;

  const std::string& name() const noexcept { return name_; }
  Endpoint address(std::uint16_t port) const noexcept { return address_.with_port(port); }

  /// Calls `main` once the World runs. It is waited for: see World::run_until_done(). Another one
  /// may follow when it has returned, as after a restart, and after a kill() at once: it begins
  /// when nothing is left of the first.
  void start(WorldMainFunction main) { begin(std::move(main), false); }
  /// The same for what serves others: it gets a SIGTERM when all that are waited for have returned.
  void start_service(WorldMainFunction main) { begin(std::move(main), true); }
  /// Whether its main, if any, has returned.
  bool done() const noexcept { return has_returned() && next_ == nullptr; }
  /// What the last main has returned; nullopt before, and when it has thrown.
  std::optional<int> status() const noexcept { return status_; }

  /// See WorldFaults::strike().
  std::uint64_t operations() const noexcept { return chance_->operations(); }
  std::uint64_t accepts() const noexcept { return chance_->accepts(); }
  std::uint64_t datagrams() const noexcept { return chance_->datagrams(); }

  /// Those that are open, for checks of what a program takes; not those that it has not accepted.
  std::vector<WorldConnection> connections() const;

  /// Ends its main as SIGKILL does: others see its connections closed, and what it had for itself
  /// alone is gone. What is left of it takes some turns to go, in which it can do nothing to
  /// anybody else; what its main returns does not matter. It may be started again.
  void kill();
  /// The same just before the step with this number, counted from 0 for each main, of what its
  /// handover does: it meets others, says, hears, waits; see RuntimeOptions::takeover.
  void kill_at_handover_step(std::uint64_t number) noexcept { killed_at_step_ = number; }
  std::uint64_t handover_steps() const noexcept { return handover_steps_; }
  bool killed() const noexcept { return killed_; }
  /// As its program gets it. A service that has been told to end so is not told again.
  void raise(Signal signal) {
    told_to_end = true;
    MemoryHost::raise(signal);
  }
  /// The connections that it had then.
  const std::vector<WorldConnection>& lost() const noexcept { return lost_; }
  /// Whether it has a listening socket.
  bool listens() const;

  /// Between the processes of this machine. It does not survive a kill().
  HandoverStart begin_handover(const HandoverOptions& options) override;
  Result<Descriptor> inherit_listener(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<> run(std::span<const LoopPlace> places, RunControl* control) override;
  bool pass_time(Instant until) override;
  void log(std::string_view line) noexcept override;

  // For the World.

  using Core = WorldCore;
  using Run = WorldRun;
  /// While its main waits for its loops.
  Run* running() const noexcept { return run_.get(); }
  bool service() const noexcept { return service_; }
  bool waited_for() const noexcept { return main_ != nullptr && !service_; }
  /// Whether its main, if any, has returned; another one may follow it.
  bool has_returned() const noexcept { return main_ == nullptr || main_->returned(); }
  /// Makes what was to follow a killed main its main.
  void begin_next();
  /// Lets main go on, until it waits or returns.
  void go_on() { main_->go_on(); }
  std::optional<Signal> next_signal() { return killed_ ? std::nullopt : take_signal(); }
  /// Whether it has been killed and its run does not know yet.
  bool take_death() noexcept { return killed_ && !std::exchange(knows_death_, true); }
  /// Main waits for something else than its loops.
  bool main_waits() const noexcept { return main_waits_; }
  /// What the loops of a run that has ended still hold, and what the host does, in words.
  std::vector<std::string> left_on_loops();
  std::vector<std::string> left_on_host();
  bool told_to_end = false;

  // For its handover.

  void set_place(WorldPlace* place) noexcept { place_ = place; }
  void begin_handover_step();
  /// Called by main; wake_main() lets it go on.
  void wait_in_main();
  void wake_main() noexcept { main_waits_ = false; }

 private:
  WorldHost(WorldState& state, std::string name, const Endpoint& address, WorldHost* machine,
            const WorldHostOptions& options, std::unique_ptr<WorldChance> chance);
  void begin(WorldMainFunction main, bool service);
  void note_failure();

  WorldState& state_;
  std::string name_;
  Endpoint address_;
  std::unique_ptr<WorldChance> chance_;
  std::unique_ptr<Run> run_;
  std::optional<int> status_;
  std::optional<std::string> thrown_;
  bool failure_noted_ = false;
  std::vector<std::string> failures_;  // of mains, that have not been told
  bool service_ = false;
  std::shared_ptr<WorldMeetings> meetings_;  // of the machine
  WorldPlace* place_ = nullptr;
  std::uint64_t handover_steps_ = 0;
  std::optional<std::uint64_t> killed_at_step_;
  bool killed_ = false;
  std::vector<WorldConnection> lost_;
  bool knows_death_ = false;
  bool main_waits_ = false;
  std::unique_ptr<WorldMain> main_;
  WorldMainFunction next_;
  bool next_is_service_ = false;
};

}  // namespace weir
