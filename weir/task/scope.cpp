#include "weir/task/scope.hpp"

#include <new>
#include <string>

namespace weir {
namespace {

/// What a supervised task has failed of may be that there is no memory; then the line says less.
void log_failure(Host& host, std::error_code error, const std::exception_ptr& exception) noexcept {
  try {
    host.log("weir: a task failed: " + describe(error, exception));
  } catch (const std::bad_alloc&) {
    host.log("weir: a task failed, and there is no memory to say why");
  }
}

}  // namespace

std::string describe(std::error_code error, const std::exception_ptr& exception) {
  if (exception == nullptr) return error.message();
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& thrown) {
    return std::string("it threw: ") + thrown.what();
  } catch (...) {
    return "it threw something that is no std::exception";
  }
}

Scope::Scope(const Context& parent, OnFailure policy) noexcept
    : policy_(policy),
      outside_(parent.cancel),
      cancel_(parent.cancel),
      context_{parent.loop, &cancel_},
      plain_(*this),
      fallible_(*this) {}

Scope::~Scope() {
  assert(running_ == 0);
}

template <class T>
std::coroutine_handle<> Scope::Children<T>::completed(Completion& self,
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
  if (running_ != 0 || waiting_ == nullptr) return std::noop_coroutine();
  // Who waits may work for somebody else than the scope does.
  Running::work_for(ContextHolder::of(waiting_).unit());
  return Running::go_on(std::exchange(waiting_, nullptr));
}

void Scope::spawn(Task<> child) {
  ++running_;
  auto handle = child.release();
  handle.promise().begin(context_, plain_);
  const Running::Working working(cancel_.unit());
  handle.resume();
}

void Scope::spawn(Task<Result<>> child) {
  ++running_;
  auto handle = child.release();
  handle.promise().begin(context_, fallible_);
  const Running::Working working(cancel_.unit());
  handle.resume();
}

void Scope::child_failed(std::error_code error, const std::exception_ptr& exception) {
  if (exception == nullptr && error == Errc::cancelled && cancelled()) {
    // No failure of its own. But work that was cut short from outside must not look whole.
    const bool cut_short = outside_ != nullptr && outside_->cancelled();
    if (cut_short && policy_ == OnFailure::fail_together) failed(error, nullptr);
    return;
  }
  ++failures_;
  if (policy_ == OnFailure::fail_together) {
    failed(error, exception);
  } else {
    log_failure(loop().host(), error, exception);
  }
}

void Scope::failed(std::error_code error, const std::exception_ptr& exception) {
  if (!first_error_ && first_exception_ == nullptr) {
    first_error_ = error;
    first_exception_ = exception;
  }
  if (policy_ == OnFailure::fail_together) cancel();
}

}  // namespace weir
