#include "weir/runtime/detail/core.hpp"

#include <exception>
#include <new>
#include <utility>

namespace weir {

Runtime::Core::Core(Runtime& runtime, std::unique_ptr<Loop> loop, int cpu, Body body)
    : Completion(&completed),
      runtime_(runtime),
      loop_(std::move(loop)),
      cpu_(cpu),
      body_(std::move(body)) {}

void Runtime::Core::begin() {
  try {
    if (const auto& real_time = runtime_.options_.real_time) {
      loop_->blocks().prefault(real_time->pool_bytes);
    }
    auto root = with_scope(OnFailure::supervise, [this](Scope& scope) { return run_body(scope); });
    auto handle = root.release();
    handle.promise().begin(Context{loop_.get(), &cancel_}, *this);
    go_on_with(handle);
  } catch (const std::bad_alloc&) {
    finish(std::current_exception());
  }
}

Task<Result<>> Runtime::Core::run_body(Scope& scope) {
  Result<> result;
  std::exception_ptr thrown;
  try {
    body_task_.emplace(body_(scope));
    result = co_await std::move(*body_task_);
  } catch (...) {
    thrown = std::current_exception();
  }
  // At once: the children may have no reason to end before everything drains.
  std::string failure = failure_of(result, thrown);
  if (!failure.empty()) runtime_.core_failed(std::move(failure));
  co_return {};
}

void Runtime::Core::drain() {
  if (finished_) return;
  loop_->timers().start(deadline_, after(loop_->now(), runtime_.options_.deadline));
  loop_->drain();
}

void Runtime::Core::deadline_passed() {
  if (finished_) return;
  loop_->host().log("weir: core " + std::to_string(loop_->core()) +
                    ": the deadline has passed: cancelling what still runs");
  cancel_.cancel();
}

std::coroutine_handle<> Runtime::Core::completed(Completion& self,
                                                 std::coroutine_handle<> finished) {
  const auto root = Task<Result<>>::Handle::from_address(finished.address());
  const std::exception_ptr thrown = root.promise().exception();
  root.destroy();
  static_cast<Core&>(self).finish(thrown);
  return std::noop_coroutine();
}

/// What the body throws has been told by then; `thrown` is why there was not even memory for it.
void Runtime::Core::finish(const std::exception_ptr& thrown) {
  body_task_.reset();
  body_ = nullptr;
  finished_ = true;
  deadline_.cancel();
  if (thrown != nullptr) runtime_.core_failed(describe({}, thrown));
  runtime_.core_finished();
}

/// Why the body failed; empty when it ended well, or because it was asked to end.
std::string Runtime::Core::failure_of(const Result<>& result,
                                      const std::exception_ptr& thrown) const {
  if (thrown != nullptr) return describe({}, thrown);
  if (result) return {};
  const std::error_code error = result.error();
  // Of all cores, not only of this one: what it shares with another may be closed a moment before.
  if (runtime_.draining() && error == Errc::closed) return {};
  if (cancel_.cancelled() && error == Errc::cancelled) return {};
  return error.message();
}

}  // namespace weir
