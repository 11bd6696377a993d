// Runs one core of a runtime: owns its loop and runs the body from start to end.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/sync/detail/background_tasks.hpp"

namespace weir {

/// A CoreRunner owns the loop of one core and runs the body on it.
/// Threads: start() and the request functions: any; the rest: the loop's thread.
class Runtime::CoreRunner : Continuation {
 public:
  CoreRunner(Runtime& runtime, std::unique_ptr<Loop> loop, int cpu, Body body);

  Loop& loop() noexcept { return *loop_; }
  int cpu() const noexcept { return cpu_; }

  /// Must be called before the loop runs.
  void start() { start_.post(); }
  /// Returns true if the body or background tasks have begun and not ended; only while the loop
  /// does not run.
  bool has_begun() const noexcept { return body_task_.has_value() || background_.running(); }
  BackgroundTasks& background() noexcept { return background_; }
  void request_drain() { drain_.post(); }
  void request_stop() { stop_.post(); }
  /// Requires that background tasks run. Runtime::core_finished() follows when they have ended.
  void request_end_of_background() { end_background_.post(); }
  /// Drains a loop without tasks. Runtime::core_finished() follows.
  void request_last_drain() { last_drain_.post(); }
  /// Resumes a loop that was created with accepting paused; see Loop::pause_accepting().
  void request_resume_accepting() { resume_accepting_.post(); }

 private:
  /// A Request makes the loop run an action once, however many threads post it and how often.
  struct Request : loop::Runnable {
    Request(CoreRunner& core, void (CoreRunner::*action)()) noexcept
        : loop::Runnable(&run), core_(core), action_(action) {}
    // Atomicity is enough to post once. acq_rel also tells the second caller that the first
    // caller's request is under way.
    void post() {
      if (!posted_.exchange(true, std::memory_order_acq_rel)) core_.loop_->post(*this);
    }
    static void run(loop::Runnable& self) {
      auto& request = static_cast<Request&>(self);
      (request.core_.*request.action_)();
    }
    CoreRunner& core_;
    void (CoreRunner::*action_)();
    std::atomic<bool> posted_{false};
  };
  struct DrainTimer : loop::Timer {
    explicit DrainTimer(CoreRunner& core) noexcept : loop::Timer(&expired), core_(core) {}
    static void expired(loop::Timer& self) {
      static_cast<DrainTimer&>(self).core_.on_drain_timeout();
    }
    CoreRunner& core_;
  };

  void begin();
  Task<Result<>> run_body(Scope& scope);
  void drain();
  void stop() { cancel_.cancel(); }
  void end_background() { background_.end(); }
  void drain_last();
  void resume_accepting() { loop_->resume_accepting(); }
  void on_drain_timeout();
  void finish(const std::exception_ptr& thrown);
  static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<> finished);
  static constexpr Kind core_kind{&completed, nullptr, "core"};
  std::string failure_of(const Result<>& result, const std::exception_ptr& thrown) const;

  Runtime& runtime_;
  std::unique_ptr<Loop> loop_;
  int cpu_;
  Body body_;
  std::optional<Task<Result<>>> body_task_;  // its parameters live until its children have ended
  CancelSource cancel_;
  BackgroundTasks background_;
  bool finished_ = false;
  DrainTimer drain_timer_{*this};
  Request start_{*this, &CoreRunner::begin};
  Request drain_{*this, &CoreRunner::drain};
  Request stop_{*this, &CoreRunner::stop};
  Request end_background_{*this, &CoreRunner::end_background};
  Request last_drain_{*this, &CoreRunner::drain_last};
  Request resume_accepting_{*this, &CoreRunner::resume_accepting};
};

}  // namespace weir
