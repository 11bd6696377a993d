// Runs one event loop per core, and starts, drains and stops them together.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/runtime/options.hpp"
#include "weir/runtime/report.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// A Runtime runs one event loop per core. Any number of runtimes may run in one process, one
/// after the other or at the same time.
/// Threads: run_on_each_core() blocks its caller. Any thread and any loop may call drain(),
/// stop() and report().
/// Lifetime: outlives everything that runs on it.
class Runtime : loop::RunControl {
 public:
  /// Creates a runtime on the operating system.
  explicit Runtime(const RuntimeOptions& options = {});
  /// Creates a runtime on another platform, such as a simulated one; `platform` outlives the
  /// runtime.
  Runtime(loop::Platform& platform, const RuntimeOptions& options);
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Calls `body(scope, args...)` on every core and blocks until all bodies and their children
  /// have finished. `body` returns a Task<Result<>> or a Task<>. Each core gets its own copy of
  /// the arguments (use std::ref for what is shared) and a scope that isolates failures
  /// (OnFailure::isolate). If one body fails, all cores drain. If RuntimeOptions::processes is
  /// set, the call returns in each worker and in the supervisor. Each of these processes may call
  /// it only once.
  /// Returns: the exit status for main(): 0, or 1 if a body failed or a loop could not be
  /// created. A log line gives the cause of a failure.
  template <class Body, class... Args>
  int run_on_each_core(Body body, Args... args) {
    return run([body = std::move(body), ... args = std::move(args)](Scope& scope) mutable {
      return as_fallible(std::invoke(body, scope, args...));
    });
  }

  /// Tells every core to finish its current work and to accept nothing new. Work that still runs
  /// after RuntimeOptions::drain_timeout is cancelled. A call before run_on_each_core() applies
  /// to the next run.
  void drain();
  /// Cancels all work immediately. A call before run_on_each_core() applies to the next run.
  void stop();
  /// Returns the counts since the start and the present state of all cores, read while the cores
  /// run. The report after a run shows its last moment; before the first run it is empty.
  /// `std::cerr << runtime.report()` prints the report. The call stops no core, but it is too
  /// expensive for every request. It allocates, and it asks the kernel for the CPU time of each
  /// core.
  RuntimeReport report() const;
  /// Returns the number of cores that run_on_each_core() uses in each process, at least 1. Cores
  /// are numbered from 0; see on_core() and PerCore.
  std::size_t core_count() const;

 private:
  class CoreRunner;
  class HotRestart;
  class TaskDump;
  using Body = std::function<Task<Result<>>(Scope&)>;

  static Task<Result<>> as_fallible(Task<Result<>> task) { return task; }
  static Task<Result<>> as_fallible(Task<> task) {
    co_await std::move(task);
    co_return {};
  }

  int run(const Body& body);
  std::optional<int> supervise();
  std::string processes_error() const;
  void apply_worker_command();
  bool is_draining() const noexcept;
  Result<> make_cores(const Body& body);
  void log_listeners();
  bool begin_hot_restart();
  void end_hot_restart();
  bool lock_memory();
  void announce();
  void core_failed(std::string failure);
  RuntimeReport report_now() const;
  /// Each core calls this when it has ended.
  void core_finished();
  void on_signal(loop::Signal signal) override;
  /// relaxed: see abandon_after().
  Instant abandon_at() noexcept override { return abandon_at_.load(std::memory_order_relaxed); }
  void on_abandon_change(std::function<void()> changed) override;
  void abandon_after(Duration length);

  std::unique_ptr<loop::Platform> own_platform_;
  loop::Platform& platform_;
  RuntimeOptions options_;
  std::unique_ptr<loop::WorkerHandle> worker_;  // set in a worker process
  std::unique_ptr<loop::LoopGroup> group_;
  std::string topology_explanation_;  // also says if the loops are pinned
  std::atomic<std::size_t> running_{0};
  std::atomic<bool> drain_requested_{false};
  std::atomic<bool> stop_requested_{false};
  std::atomic<Instant> abandon_at_{never};
  std::unique_ptr<TaskDump> task_dump_;  // used by the thread of run() only
  mutable std::mutex mutex_;             // guards the members below: any thread may call drain()
  std::vector<std::unique_ptr<CoreRunner>> cores_;
  std::unique_ptr<HotRestart> hot_restart_;  // nullptr: no sockets are received or offered
  Instant created_at_{};                     // creation time of the cores
  RuntimeReport last_report_;                // report of the last run
  bool last_drains_ = false;                 // true when all tasks of a run have ended
  bool signal_drains_ = false;  // a signal has asked for a drain; used by its thread only
  std::string failure_;
  std::function<void()> abandon_changed_;
};

}  // namespace weir
