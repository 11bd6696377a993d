#include "weir/runtime/detail/core.hpp"

#include <exception>
#include <new>
#include <utility>

namespace weir {

Runtime::CoreRunner::CoreRunner(Runtime& runtime, std::unique_ptr<Loop> loop, int cpu, Body body)
    : Continuation(core_kind),
      runtime_(runtime),
      loop_(std::move(loop)),
      cpu_(cpu),
      body_(std::move(body)),
      background_(*loop_, [&runtime] { runtime.core_finished(); }) {}

void Runtime::CoreRunner::begin() {
  try {
    if (const auto& real_time = runtime_.options_.real_time) {
      loop_->blocks().prefault(real_time->pool_bytes);
    }
    auto root = with_scope(OnFailure::isolate, [this](Scope& scope) { return run_body(scope); });
    auto handle = root.release();
    cancel_.list_in(loop_->roots());
    handle.promise().begin(Context{loop_.get(), &cancel_}, *this);
    resume_coroutine(handle);
  } catch (const std::bad_alloc&) {
    finish(std::current_exception());
  }
}

Task<Result<>> Runtime::CoreRunner::run_body(Scope& scope) {
  Result<> result;
  std::exception_ptr thrown;
  try {
    body_task_.emplace(body_(scope));
    result = co_await std::move(*body_task_);
  } catch (...) {
    thrown = std::current_exception();
  }
  // Report it immediately: the children may have no reason to end before everything drains.
  std::string failure = failure_of(result, thrown);
  if (!failure.empty()) runtime_.core_failed(std::move(failure));
  co_return {};
}

void Runtime::CoreRunner::drain() {
  if (finished_ && !background_.running()) return;
  if (!finished_) {
    loop_->timers().start(drain_timer_, after(loop_->now(), runtime_.options_.drain_timeout));
  }
  loop_->drain();
}

void Runtime::CoreRunner::drain_last() {
  loop_->drain();
  runtime_.core_finished();
}

void Runtime::CoreRunner::on_drain_timeout() {
  if (finished_) return;
  // Cancel before logging: a log without a reader may block.
  cancel_.cancel();
  loop_->platform().log("weir: core " + std::to_string(loop_->core()) +
                        ": drain timed out: cancelling the remaining work");
}

std::coroutine_handle<> Runtime::CoreRunner::completed(Continuation& self,
                                                       std::coroutine_handle<> finished) {
  const auto root = Task<Result<>>::Handle::from_address(finished.address());
  const std::exception_ptr thrown = root.promise().exception();
  root.destroy();
  static_cast<CoreRunner&>(self).finish(thrown);
  return std::noop_coroutine();
}

/// Ends the core. The body's own exception has been reported by then; `thrown` says that there
/// was no memory to start it.
void Runtime::CoreRunner::finish(const std::exception_ptr& thrown) {
  body_task_.reset();
  body_ = nullptr;
  finished_ = true;
  drain_timer_.cancel();
  if (thrown != nullptr) runtime_.core_failed(describe({}, thrown));
  runtime_.core_finished();
}

/// Returns why the body failed; empty if it ended well or because it was told to end.
std::string Runtime::CoreRunner::failure_of(const Result<>& result,
                                            const std::exception_ptr& thrown) const {
  if (thrown != nullptr) return describe({}, thrown);
  if (result) return {};
  const std::error_code error = result.error();
  // Any core counts, because another core may have closed a shared object a moment earlier.
  if (runtime_.is_draining() && error == Errc::closed) return {};
  if (cancel_.cancelled() && error == Errc::cancelled) return {};
  return error.message();
}

}  // namespace weir
