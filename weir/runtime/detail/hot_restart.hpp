// A runtime's part in a hot restart: the sockets that it receives, and those that it offers.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "weir/loop/contract/detail/handover.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir {

/// HotRestart receives sockets for a runtime and offers them to a newer process.
/// Threads: begin(), prepare(), start() and the destructor belong to the thread of run(); the
/// rest: any.
class Runtime::HotRestart final : loop::HandoverDelegate {
 public:
  explicit HotRestart(Runtime& runtime) : runtime_(runtime) {}
  ~HotRestart() override = default;

  /// Receives the sockets of an older process, of the supervisor and of the process manager.
  /// Returns: a description of the failure; empty if there was none.
  std::string begin();
  /// Marks the sockets as open in this process alone.
  void take_sole_ownership();
  /// Must be called before the loops of `group` are created.
  void prepare(loop::LoopGroup& group);
  /// Returns true if the loops start with accepting paused because an older process still
  /// accepts.
  bool taking_over() const noexcept { return taking_over_; }
  /// Starts the handover's thread; must be called when the cores exist.
  /// Errors: those of Handover::start().
  Result<> start();
  /// Stops offering sockets because the runtime drains. The caller holds the runtime's mutex.
  /// Returns: false if the loops must not drain yet, because it is undecided which process owns
  /// the sockets. The handover calls Runtime::drain() again after the decision. The time limit of
  /// the drain begins then.
  bool stop() noexcept;
  /// Returns true if a drain must wait because a newer process has the sockets but is not ready.
  /// The drain begins when the newer process is ready or has failed. It returns true at most
  /// once: a second request to drain takes effect immediately.
  bool postpones_drain();

 private:
  Sockets sockets_to_offer() override;
  std::string state_to_offer() override;
  bool confirm_handover(const Sockets& sockets) override;
  void on_handover_failed(const Sockets& sockets) override;
  void on_handed_over() override;
  std::string unaccepted_addresses() override;
  bool prepare_ownership() override;
  void on_owned() override;
  void on_taken_over() override;
  void on_takeover_failed(std::string why) override;

  std::string inherit();
  void take_worker_sockets(loop::WorkerHandle& worker);
  void log(const std::string& what) { runtime_.platform_.log("weir: " + what); }

  Runtime& runtime_;
  Sockets sockets_;    // empty after prepare()
  std::string state_;  // that of the older process; empty after prepare()
  bool taking_over_ = false;
  bool decision_pending_ = false;  // the older process decides; guarded by the runtime's mutex
  std::mutex mutex_;               // guards the members below
  bool newer_connected_ = false;
  bool drain_postponed_ = false;
  std::unique_ptr<loop::Handover> handover_;  // last member: its thread calls the functions above
};

}  // namespace weir
