// A runtime of several processes: how it becomes a supervisor and workers, and what a worker obeys.
#include <algorithm>
#include <string>
#include <utility>

#include "weir/runtime/detail/core.hpp"
#include "weir/runtime/restart.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/loop/supervision.hpp"

namespace weir {

std::string Runtime::why_no_processes() const {
  if (options_.takeover) return "several processes cannot take sockets over (--takeover)";
  if (!options_.inherited.empty()) return "several processes cannot use inherited sockets";
  if (!options_.handle_signals) return "several processes need handle_signals";
  return {};
}

/// In the supervisor, when all has ended: the status. Nothing in a worker that begins, or without
/// processes.
std::optional<int> Runtime::supervise() {
  if (!options_.processes || options_.processes->count < 2) return {};
  if (seat_ != nullptr) {
    host_.log("weir: a worker process runs once: its sockets went with the first run");
    return 1;
  }
  std::string failure = why_no_processes();
  if (failure.empty()) {
    SupervisionOptions options;
    options.loops.assign(options_.processes->count, core_count());
    options.endpoints = options_.processes->endpoints;
    options.deadline = options_.deadline;
    options.restart = options_.processes->restart;
    options.announce = options_.announce;
    if (options_.announce) {
      host_.log("weir: " + std::to_string(options.loops.size()) + " processes");
    }
    Supervised supervised = host_.supervise(options);
    seat_ = std::move(supervised.seat);
    if (seat_ != nullptr) {
      // The supervisor has told where it listens, and one worker speaks for all.
      options_.announce = options_.announce && seat_->index() == 0 && seat_->first_life();
      return {};
    }
    failure = std::move(supervised.failure);
    if (failure.empty()) return supervised.status;
  }
  host_.log("weir: " + failure);
  return 1;
}

/// Whether anybody was asked to drain who may have closed what the cores of this process share: one
/// of them, or another worker.
bool Runtime::draining() const noexcept {
  // acquire, with the release in drain(): that core was asked after the flag was set.
  if (asked_to_drain_.load(std::memory_order_acquire)) return true;
  return seat_ != nullptr && seat_->order() != WorkerOrder::serve;
}

/// The supervisor has sent a signal; or somebody else, who means nothing.
void Runtime::obey() {
  switch (seat_->order()) {
    case WorkerOrder::serve:
      return;
    case WorkerOrder::drain:
      // Whether it drains already, for a failure, or not.
      if (restart_ != nullptr) restart_->keep_for_good();
      // acquire: as in signalled().
      if (asked_to_drain_.load(std::memory_order_acquire)) return;
      return drain();
    case WorkerOrder::stop:
      return stop();
  }
}

}  // namespace weir
