// One core of a runtime: its loop, and what runs on it from start to end.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "weir/runtime/runtime.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"

namespace weir {

/// Threads: start() and those that ask, any; the rest the loop's.
class Runtime::Core : Completion {
 public:
  Core(Runtime& runtime, std::unique_ptr<Loop> loop, int cpu, Body body);

  Loop& loop() noexcept { return *loop_; }
  int cpu() const noexcept { return cpu_; }

  /// Before the loop runs.
  void start() { start_.post(); }
  /// Whether the body has begun and not ended. Only while the loop does not run.
  bool begun() const noexcept { return body_task_.has_value(); }
  void ask_to_drain() { drain_.post(); }
  void ask_to_stop() { stop_.post(); }
  /// For a loop that was made held; see Loop::hold().
  void ask_to_admit() { admit_.post(); }

 private:
  /// Something that the loop does once, whoever asks for it and how often.
  struct Request : Runnable {
    Request(Core& core, void (Core::*action)()) noexcept
        : Runnable(&run), core_(core), action_(action) {}
    // acq_rel, although only one may post it is all that is needed: who is second may take it that
    // the first one's request is under way.
    void post() {
      if (!posted_.exchange(true, std::memory_order_acq_rel)) core_.loop_->post(*this);
    }
    static void run(Runnable& self) {
      auto& request = static_cast<Request&>(self);
      (request.core_.*request.action_)();
    }
    Core& core_;
    void (Core::*action_)();
    std::atomic<bool> posted_{false};
  };
  struct DeadlineTimer : Timer {
    explicit DeadlineTimer(Core& core) noexcept : Timer(&expired), core_(core) {}
    static void expired(Timer& self) { static_cast<DeadlineTimer&>(self).core_.deadline_passed(); }
    Core& core_;
  };

  void begin();
  Task<Result<>> run_body(Scope& scope);
  void drain();
  void stop() { cancel_.cancel(); }
  void admit() { loop_->admit(); }
  void deadline_passed();
  void finish(const std::exception_ptr& thrown);
  static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<> finished);
  std::string failure_of(const Result<>& result, const std::exception_ptr& thrown) const;

  Runtime& runtime_;
  std::unique_ptr<Loop> loop_;
  int cpu_;
  Body body_;
  std::optional<Task<Result<>>> body_task_;  // its parameters live until its children have ended
  CancelSource cancel_;
  bool finished_ = false;
  DeadlineTimer deadline_{*this};
  Request start_{*this, &Core::begin};
  Request drain_{*this, &Core::drain};
  Request stop_{*this, &Core::stop};
  Request admit_{*this, &Core::admit};
};

}  // namespace weir
