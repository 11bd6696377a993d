#include "weir/cores/core.hpp"

#include <exception>
#include <utility>

namespace weir {

Runtime::Core::Core(Runtime& runtime, std::unique_ptr<Loop> loop, int cpu, Body body)
    : Completion(&completed),
      runtime_(runtime),
      loop_(std::move(loop)),
      cpu_(cpu),
      body_(std::move(body)) {}

void Runtime::Core::run_body() {
  auto root = with_scope(OnFailure::supervise, std::move(body_));
  auto handle = root.release();
  handle.promise().begin(Context{loop_.get(), &cancel_}, *this);
  handle.resume();
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
  auto& core = static_cast<Core&>(self);
  const auto root = Task<Result<>>::Handle::from_address(finished.address());
  std::string failure = core.failure_of(root);
  root.destroy();
  core.finished_ = true;
  core.deadline_.cancel();
  core.runtime_.core_finished(std::move(failure));
  return std::noop_coroutine();
}

/// Why the body failed; empty when it ended well, or because it was asked to end.
std::string Runtime::Core::failure_of(Task<Result<>>::Handle finished) const {
  if (finished.promise().exception() != nullptr) {
    return describe({}, finished.promise().exception());
  }
  const Result<>& result = finished.promise().value();
  if (result) return {};
  const std::error_code error = result.error();
  if (loop_->draining() && error == Errc::closed) return {};
  if (cancel_.cancelled() && error == Errc::cancelled) return {};
  return error.message();
}

}  // namespace weir
