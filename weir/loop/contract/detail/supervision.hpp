// Supervision: one process of a program starts worker processes, and the workers serve.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// Restart policy of one worker. The pause doubles with each restart in a row. A run of at least
/// `stable_after` ends the row.
struct RestartPolicy {
  Duration pause_first = std::chrono::milliseconds(100);
  Duration pause_max = std::chrono::seconds(10);
  Duration stable_after = std::chrono::seconds(30);  ///< least length of a run that ends the row
  /// Most restarts in a row; the worker is not started again after them.
  unsigned in_a_row_max = 10;
};

}  // namespace weir

namespace weir::loop {

/// A RestartBackoff counts the runs of one worker and decides when it starts again.
/// Threads: one at a time.
class RestartBackoff {
 public:
  explicit RestartBackoff(const RestartPolicy& policy) noexcept : policy_(policy) {}

  void on_start(Instant now) noexcept { started_at_ = now; }
  /// Records that the worker has ended.
  /// Returns: the time of the next start; nullopt if the worker is not to be started again.
  std::optional<Instant> on_end(Instant now) noexcept {
    if (now - started_at_ >= policy_.stable_after) in_a_row_ = 0;
    if (in_a_row_ == policy_.in_a_row_max) return std::nullopt;
    const bool first = in_a_row_++ == 0;
    pause_ = first ? policy_.pause_first : std::min(pause_ * 2, policy_.pause_max);
    return after(now, pause_);
  }
  unsigned in_a_row() const noexcept { return in_a_row_; }

 private:
  RestartPolicy policy_;
  Instant started_at_{};
  unsigned in_a_row_ = 0;
  Duration pause_{};
};

struct SupervisionOptions {
  /// Number of loops of each worker. A worker gets that number of sockets of each TCP endpoint.
  std::vector<std::size_t> loops;
  /// Addresses that the supervisor opens once. All loops and workers share one socket of a Unix
  /// path.
  std::vector<os::Address> endpoints;
  /// Time limit of a drain, counted from the first signal. A second signal ends the drain
  /// immediately.
  Duration drain_timeout = std::chrono::seconds(10);
  /// Time from the end of the drain (its time limit or the second signal) until the supervisor
  /// kills the workers that still run. A worker uses it to log which of its loops does not end.
  Duration kill_timeout = std::chrono::seconds(3);
  RestartPolicy restart = {};
  bool announce = true;  ///< true to log the addresses that the workers listen on
};

/// The command of the supervisor to its workers. A signal (SIGTERM) only makes a worker read the
/// command.
enum class WorkerCommand : int {
  serve,  ///< the default; a signal from any sender has no effect
  drain,
  stop,  ///< stop without draining
};

/// A WorkerHandle is what a worker process has from its supervisor. A worker that is restarted
/// after a crash gets the same sockets. The supervisor keeps the sockets open, so connections in
/// their queues wait for the restarted worker. SIGINT and SIGTERM are blocked on the thread that
/// created the handle, and on threads started from there, while the handle lives.
class WorkerHandle {
 public:
  struct Socket {
    Descriptor descriptor;
    os::Address bound;
  };
  virtual ~WorkerHandle() = default;

  virtual std::size_t index() const noexcept = 0;
  /// Returns true in the first run of the worker.
  virtual bool is_first_run() const noexcept = 0;
  virtual WorkerCommand command() const noexcept = 0;
  /// Returns the sockets of the worker. Call it at most once.
  virtual std::vector<Socket> take_sockets() = 0;
};

/// The result of Platform::supervise() in each of the processes.
struct Supervised {
  /// Set in a worker, which continues and serves.
  std::unique_ptr<WorkerHandle> worker = nullptr;
  /// The exit status for main(), in the supervisor, after all workers have ended for good.
  int status = 0;
  /// The reason why no worker has started, in the supervisor, as text for log lines.
  std::string failure = {};
};

}  // namespace weir::loop
