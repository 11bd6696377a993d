// The runtime: one event loop per core, started, drained and stopped together.
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

#include "weir/runtime/options.hpp"
#include "weir/runtime/report.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/loop_group.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// Many loops, one per core. Any number of runtimes may run in one process, one after the other or
/// at once. Threads: run_on_each_core() blocks its caller; drain(), stop() and report() may be
/// called from any thread and from a loop. Lifetime: outlives everything that runs on it.
class Runtime : RunControl {
 public:
  /// On the operating system.
  explicit Runtime(const RuntimeOptions& options = {});
  /// On another host, such as a simulated one; `host` outlives the runtime.
  Runtime(Host& host, const RuntimeOptions& options);
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Calls `body(scope, args...)` on every core, a function that returns a Task<Result<>> or a
  /// Task<>, with its own copy of the arguments (std::ref for what is shared) and a supervising
  /// scope; returns when all have finished, children included. The value is for main(): 0, or 1
  /// when a body failed or a loop could not be made, after one line that says why. When one body
  /// fails, all cores drain. With RuntimeOptions::processes it returns in each worker and in the
  /// supervisor; there it may be called once.
  template <class Body, class... Args>
  int run_on_each_core(Body body, Args... args) {
    return run([body = std::move(body), ... args = std::move(args)](Scope& scope) mutable {
      return as_fallible(std::invoke(body, scope, args...));
    });
  }

  /// Asks every core to finish what it has and take nothing new; after the deadline of the options,
  /// what still runs is cancelled. Before run_on_each_core() it holds for the next run.
  void drain();
  /// Cancels everything now. Before run_on_each_core() it holds for the next run.
  void stop();
  /// What its cores have done so far and what they have now, read while they go on; after a run
  /// that of the last moment, before the first one nothing. `std::cerr << runtime.report()` prints
  /// it. It stops no core, but is not for every request: it allocates, and asks the kernel for each
  /// core's CPU time.
  RuntimeReport report() const;
  /// How many cores run_on_each_core() uses, counted from 0; see on_core() and PerCore. Of several
  /// processes each has so many.
  std::size_t core_count() const;

 private:
  class Core;
  class Restart;
  using Body = std::function<Task<Result<>>(Scope&)>;

  static Task<Result<>> as_fallible(Task<Result<>> task) { return task; }
  static Task<Result<>> as_fallible(Task<> task) {
    co_await std::move(task);
    co_return {};
  }

  int run(const Body& body);
  std::optional<int> supervise();
  std::string why_no_processes() const;
  void obey();
  bool draining() const noexcept;
  Result<> make_cores(const Body& body);
  void name_listeners();
  bool begin_restart();
  void end_restart();
  bool lock_memory();
  void announce();
  void core_failed(std::string failure);
  RuntimeReport report_now() const;
  /// Called by each core at its end.
  void core_finished();
  void signalled(Signal signal) override;
  /// relaxed: see abandon_after().
  Instant abandon_at() noexcept override { return abandon_at_.load(std::memory_order_relaxed); }
  void on_abandon_change(std::function<void()> changed) override;
  void abandon_after(Duration length);

  std::unique_ptr<Host> own_host_;
  Host& host_;
  RuntimeOptions options_;
  std::unique_ptr<WorkerSeat> seat_;  // in a worker process
  std::unique_ptr<LoopGroup> group_;
  std::string topology_explanation_;  // and whether it is pinned
  std::atomic<std::size_t> running_{0};
  std::atomic<bool> asked_to_drain_{false};
  std::atomic<bool> asked_to_stop_{false};
  std::atomic<Instant> abandon_at_{never};
  mutable std::mutex mutex_;  // guards what follows, which drain() and others may meet at any time
  std::vector<std::unique_ptr<Core>> cores_;
  std::unique_ptr<Restart> restart_;  // nullptr: nothing is taken over or given on
  Instant made_at_{};                 // the cores
  RuntimeReport last_report_;         // of the last run
  std::string failure_;
  std::function<void()> abandon_changed_;
};

}  // namespace weir
