// A Host is one machine of a World: it implements Platform, runs a main function, and offers
// functions to tests.
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

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/sim/detail/handover_endpoint.hpp"
#include "weir/sim/detail/host_main.hpp"
#include "weir/sim/detail/world_state.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::sim {

// The state of a call of Platform::run(): the loops of the host while its main waits for them.

/// One core of a host: its loop and the state of that loop in the run.
struct HostCore {
  Loop* loop;
  Instant paused_until = Instant::min();  ///< end of a pause in which other programs use its CPU
  bool allocation_fails = false;          ///< true if the test made an allocation fail
};

/// The state of one call of Platform::run().
struct HostRun {
  std::vector<HostCore> cores;
  loop::RunControl* control = nullptr;
  Result<> outcome;
};

/// HostOptions sets the cores and the resource limits of a simulated Host.
struct HostOptions {
  std::size_t cores = 1;
  std::size_t buffer_bytes = 64 * 1024;  ///< maximum for each direction of a connection
  std::size_t descriptors_max = 1 << 20;
  MemoryFiles files = MemoryFiles::by_backend;
};

/// An open connection of a host.
struct ConnectionInfo {
  Endpoint peer;
  std::uint64_t received = 0;  ///< bytes that the program has received
};

/// The main function of a program. It creates a Runtime on the platform that it is given and
/// returns the result of the Runtime.
using MainFunction = std::function<int(loop::Platform&)>;

/// A Host is one simulated machine, or one more process of a simulated machine. World::host() and
/// World::process() create it. Its main runs unchanged programs; the World turns the loops of
/// their Runtime. Turning a loop by hand is not supported: a wait on such a loop aborts the
/// program with a message.
/// Threads: one at a time; the World ensures it.
/// Lifetime: the World owns it.
class Host final : public MemoryPlatform {
 public:
  /// Creates a machine. Its address on every port is 10.0.0.0 + `number` + 1; `number` + 1 is
  /// below 2^24.
  Host(WorldState& state, std::string name, unsigned number, const HostOptions& options);
  /// Creates one more process of `machine`. It has the address and ports of the machine, and its
  /// own descriptors and files.
  Host(WorldState& state, std::string name, Host& machine, const HostOptions& options);
  ~Host() override;

  const std::string& name() const noexcept { return name_; }
  Endpoint address(std::uint16_t port) const noexcept { return address_.with_port(port); }

  /// Calls `main` when the World runs. World::run_until_done() waits for its end. Another main
  /// may be started when this one has returned, as after a restart. It may also be started
  /// immediately after kill(), and then begins when nothing is left of the first one.
  void start(MainFunction main) { begin(std::move(main), false); }
  /// Calls `main` as start() does, for a program that serves other hosts. The World raises
  /// SIGTERM in it when every main that start() started has returned.
  void start_service(MainFunction main) { begin(std::move(main), true); }
  /// Returns true if no main runs and none waits to be started.
  bool done() const noexcept { return has_returned() && next_ == nullptr; }
  /// Returns the result of the last main; nullopt before it returns, or if it has thrown.
  std::optional<int> status() const noexcept { return status_; }

  /// The counts of FaultInjector::inject().
  std::uint64_t operations() const noexcept { return nondeterminism_->operations(); }
  std::uint64_t accepts() const noexcept { return nondeterminism_->accepts(); }
  std::uint64_t datagrams() const noexcept { return nondeterminism_->datagrams(); }
  std::uint64_t file_operations() const noexcept { return nondeterminism_->file_operations(); }

  /// Returns the open connections, for checks of what a program uses. Connections that the host
  /// has not accepted yet are not included.
  std::vector<ConnectionInfo> connections() const;

  /// Ends its main as SIGKILL does. Its peers see the connections closed, and resources that no
  /// other process shares are gone. The rest of the program takes some turns to end and has no
  /// effect on other hosts or processes. The result of its main is ignored. The host may be
  /// started again.
  void kill();
  /// Kills the host just before step `number` of its handover. Each main counts its steps from 0,
  /// such as a connect, a send, a receive or a wait; see RuntimeOptions::hot_restart. A step that
  /// the present main does not reach counts for the next main. kill() drops the plan.
  void kill_at_handover_step(std::uint64_t number) noexcept { kill_step_ = number; }
  std::uint64_t handover_steps() const noexcept { return handover_steps_; }
  bool killed() const noexcept { return killed_; }
  /// Delivers `signal` to its program. The World raises no further SIGTERM in a service after
  /// this call. A signal for a killed process is lost. If start() was called after kill(), the
  /// signal is one for the new main.
  void raise(loop::Signal signal) {
    terminate_sent = true;
    if (!killed_ || next_ != nullptr) MemoryPlatform::raise(signal);
  }
  /// Returns the connections that were open at the last kill().
  const std::vector<ConnectionInfo>& lost() const noexcept { return lost_; }
  /// Returns true if it has a listening socket.
  bool listens() const;

  /// Begins a handover between processes of this machine. A handover does not survive kill().
  loop::HandoverStart begin_handover(const HandoverOptions& options) override;
  Result<loop::Descriptor> inherit_listener(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<> run(std::span<const loop::LoopPlacement> placements, loop::RunControl* control) override;
  bool pass_time(Instant until) override;
  void write_line(std::string_view line) noexcept override;

  // Functions for the World.

  using Core = HostCore;
  using Run = HostRun;
  /// Returns the state of Platform::run() while its main waits in it, otherwise nullptr.
  Run* running() const noexcept { return run_.get(); }
  bool service() const noexcept { return service_; }
  bool is_awaited() const noexcept { return main_ != nullptr && !service_; }
  /// Returns true if no main runs; another main may wait to be started.
  bool has_returned() const noexcept { return main_ == nullptr || main_->returned(); }
  /// Makes the main that was started after kill() the current main.
  void start_next() { launch(std::exchange(next_, nullptr), next_is_service_); }
  /// Resumes main until it waits or returns.
  void resume() { main_->resume(); }
  std::optional<loop::Signal> next_signal() { return killed_ ? std::nullopt : take_signal(); }
  /// Returns true once after kill(): the run has not been ended for it yet.
  bool take_kill() noexcept { return killed_ && !std::exchange(kill_seen_, true); }
  /// Returns the end of the last pause; kill() ends a pause.
  Instant paused_until() const noexcept { return nondeterminism_->paused_until(); }
  void set_paused_until(Instant end) noexcept { nondeterminism_->set_paused_until(end); }
  /// Returns true if main waits for something other than its loops.
  bool main_is_blocked() const noexcept { return main_blocked_; }
  /// Return descriptions of everything that the loops of an ended run, or the host, still hold.
  /// leaks_on_host() includes the failures of its mains.
  std::vector<std::string> leaks_on_loops();
  std::vector<std::string> leaks_on_host();
  bool terminate_sent = false;
  /// Appends to /etc/hosts for the machine. It works even if the process is dead or has no free
  /// descriptor.
  void append_to_hosts_file(const std::string& lines);

  // Functions for its handover.

  void set_handover_endpoint(SimHandoverEndpoint* endpoint) noexcept {
    handover_endpoint_ = endpoint;
  }
  void start_handover_step();
  /// Blocks main until unblock_main(). Main calls it.
  void block_main();
  void unblock_main() noexcept { main_blocked_ = false; }

 private:
  Host(WorldState& state, std::string name, const Endpoint& address, Host* machine,
       const HostOptions& options, std::unique_ptr<SeededNondeterminism> nondeterminism);
  void begin(MainFunction main, bool service);
  void launch(MainFunction main, bool service);
  void record_failure();

  WorldState& state_;
  std::string name_;
  Endpoint address_;
  std::unique_ptr<SeededNondeterminism> nondeterminism_;
  std::unique_ptr<Run> run_;
  std::optional<int> status_;
  std::optional<std::string> thrown_;
  bool failure_recorded_ = false;
  std::vector<std::string> failures_;  // failures of mains, not yet reported
  bool service_ = false;
  std::shared_ptr<SimRendezvousMap> rendezvous_;  // shared by the processes of the machine
  SimHandoverEndpoint* handover_endpoint_ = nullptr;
  std::uint64_t handover_steps_ = 0;
  std::optional<std::uint64_t> kill_step_;
  bool killed_ = false;
  std::vector<ConnectionInfo> lost_;
  bool kill_seen_ = false;
  bool main_blocked_ = false;
  std::unique_ptr<HostMain> main_;
  MainFunction next_;
  bool next_is_service_ = false;
};

}  // namespace weir::sim
