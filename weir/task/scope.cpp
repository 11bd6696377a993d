// Spawning in a Scope, and the handling of failures.
#include "weir/task/scope.hpp"

#include <new>
#include <string>

namespace weir {
namespace {

/// Logs a failure. The line gives no reason if there is no memory for it, which may be the
/// failure.
void log_failure(loop::PlatformLog& platform, std::error_code error,
                 const std::exception_ptr& exception) noexcept {
  try {
    platform.log("weir: a task failed: " + describe(error, exception));
  } catch (const std::bad_alloc&) {
    platform.log("weir: a task failed: reason unknown (out of memory)");
  }
}

}  // namespace

std::string describe(std::error_code error, const std::exception_ptr& exception) {
  if (exception == nullptr) return error.message();
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& thrown) {
    return std::string("exception: ") + thrown.what();
  } catch (...) {
    return "exception of an unknown type";
  }
}

Scope::Scope(const Context& parent, OnFailure policy) noexcept
    : policy_(policy),
      parent_cancel_(parent.cancel),
      cancel_(parent.cancel),
      context_{parent.loop, &cancel_},
      void_children_(*this),
      result_children_(*this) {
  // Reports of tasks find the children of a scope that no source cancels, such as a service's.
  if (parent.cancel == nullptr && parent.loop != nullptr) cancel_.list_in(parent.loop->roots());
}

Scope::~Scope() {
  assert(running_ == 0);
}

template <class T>
std::coroutine_handle<> Scope::Children<T>::completed(Continuation& self,
                                                      std::coroutine_handle<> finished) {
  Scope& scope = static_cast<Children&>(self).scope_;
  const auto child = Task<T>::Handle::from_address(finished.address());
  if (child.promise().exception() != nullptr) {
    scope.child_failed({}, child.promise().exception());
  } else if constexpr (!std::is_void_v<T>) {
    if (!child.promise().value()) scope.child_failed(child.promise().value().error(), nullptr);
  }
  child.destroy();
  return scope.child_finished();
}

std::coroutine_handle<> Scope::child_finished() noexcept {
  --running_;
  if (running_ != 0 || !owner_waits_) return std::noop_coroutine();
  owner_waits_ = false;
  // The waiting coroutine may have another trace than the scope.
  loop::CurrentActivity::set_trace(ContextHolder::of(owner_).trace());
  return loop::CurrentActivity::transfer_to(owner_);
}

void Scope::spawn(Task<> child) {
  ++running_;
  auto handle = child.release();
  handle.promise().begin(context_, void_children_);
  const loop::CurrentActivity::TraceGuard trace_guard(cancel_.trace());
  handle.resume();
}

void Scope::spawn(Task<Result<>> child) {
  ++running_;
  auto handle = child.release();
  handle.promise().begin(context_, result_children_);
  const loop::CurrentActivity::TraceGuard trace_guard(cancel_.trace());
  handle.resume();
}

void Scope::child_failed(std::error_code error, const std::exception_ptr& exception) {
  if (error == Errc::cancelled && cancelled()) {
    // The child has not failed, but work that was cut short from outside must not look complete.
    const bool cancelled_from_outside = parent_cancel_ != nullptr && parent_cancel_->cancelled();
    if (cancelled_from_outside && policy_ == OnFailure::cancel_siblings)
      record_failure(error, nullptr);
    return;
  }
  // A drain closes listeners, which ends the children that accept from them.
  const bool drained = error == Errc::closed && loop().draining();
  if (drained && policy_ == OnFailure::isolate) return;
  ++failures_;
  if (policy_ == OnFailure::cancel_siblings) {
    record_failure(error, exception);
  } else {
    log_failure(loop().platform(), error, exception);
  }
}

void Scope::record_failure(std::error_code error, const std::exception_ptr& exception) {
  if (!first_error_ && first_exception_ == nullptr) {
    first_error_ = error;
    first_exception_ = exception;
  }
  if (policy_ == OnFailure::cancel_siblings) cancel();
}

}  // namespace weir
