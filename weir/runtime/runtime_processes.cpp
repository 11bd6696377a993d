// A runtime of several processes: becomes the supervisor and its workers, and obeys in workers.
#include <algorithm>
#include <string>
#include <utility>

#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/runtime/detail/core.hpp"
#include "weir/runtime/detail/hot_restart.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir {

std::string Runtime::processes_error() const {
  if (options_.hot_restart)
    return "hot restart (--hot-restart) cannot be combined with worker processes";
  if (!options_.inherited.empty())
    return "inherited sockets cannot be combined with worker processes";
  if (!options_.handle_signals) return "worker processes need RuntimeOptions::handle_signals";
  return {};
}

/// Runs the supervisor. Returns the exit status in the supervisor after all workers have ended,
/// or in a worker that cannot run. Returns nothing in a new worker, or if there is only one
/// process.
std::optional<int> Runtime::supervise() {
  if (!options_.processes || options_.processes->count < 2) return {};
  if (worker_ != nullptr) {
    platform_.log("weir: cannot run again in a worker process: the first run used its sockets");
    return 1;
  }
  std::string failure = processes_error();
  if (failure.empty()) {
    loop::SupervisionOptions options;
    options.loops.assign(options_.processes->count, core_count());
    options.endpoints = options_.processes->endpoints;
    options.drain_timeout = options_.drain_timeout;
    options.restart = options_.processes->restart;
    options.announce = options_.announce;
    if (options_.announce) {
      platform_.log("weir: " + std::to_string(options.loops.size()) + " processes");
    }
    loop::Supervised supervised = platform_.supervise(options);
    worker_ = std::move(supervised.worker);
    if (worker_ != nullptr) {
      // The supervisor has logged the listeners, and one worker logs for all.
      options_.announce = options_.announce && worker_->index() == 0 && worker_->is_first_run();
      return {};
    }
    failure = std::move(supervised.failure);
    if (failure.empty()) return supervised.status;
  }
  platform_.log("weir: " + failure);
  return 1;
}

/// Returns true if a core of this process or another worker drains. Either may have closed
/// objects that the cores of this process share.
bool Runtime::is_draining() const noexcept {
  // acquire pairs with the release in drain(): a core is told to drain after the flag was set.
  if (drain_requested_.load(std::memory_order_acquire)) return true;
  return worker_ != nullptr && worker_->command() != loop::WorkerCommand::serve;
}

/// Obeys the supervisor, which has sent a signal; a signal from another process has no effect.
void Runtime::apply_worker_command() {
  switch (worker_->command()) {
    case loop::WorkerCommand::serve:
      return;
    case loop::WorkerCommand::drain:
      // The process may already drain because of a failure.
      if (hot_restart_ != nullptr) hot_restart_->take_sole_ownership();
      // acquire: as in on_signal().
      if (drain_requested_.load(std::memory_order_acquire)) return;
      return drain();
    case loop::WorkerCommand::stop:
      return stop();
  }
}

}  // namespace weir
