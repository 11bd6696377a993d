#include "weir/task/sync/detail/background_tasks.hpp"

#include <functional>
#include <new>

namespace weir {

BackgroundTasks* BackgroundTasks::find(Loop& loop) noexcept {
  const auto* const all = loop.group().slots().find<BackgroundTasksOfCores>();
  return all == nullptr ? nullptr : all->cores[loop.core()];
}

void BackgroundTasks::spawn(Task<> task) {
  if (scope_ == nullptr) {
    const auto body = [this](Scope& scope) { return wait_for_end(scope); };
    root_.emplace(with_scope(OnFailure::isolate, body));
    root_->start(Context{&loop_, nullptr}, *this);
    if (scope_ == nullptr) throw std::bad_alloc();  // the body had no memory for its frame
  }
  scope_->spawn(std::move(task));
}

Task<> BackgroundTasks::wait_for_end(Scope& scope) {
  scope_ = &scope;
  std::ignore = co_await end_.wait();
  scope.cancel();
}

std::coroutine_handle<> BackgroundTasks::completed(Continuation& self, std::coroutine_handle<>) {
  auto& tasks = static_cast<BackgroundTasks&>(self);
  tasks.root_.reset();
  tasks.scope_ = nullptr;
  if (tasks.end_.is_set()) tasks.ended_();
  return std::noop_coroutine();
}

}  // namespace weir
