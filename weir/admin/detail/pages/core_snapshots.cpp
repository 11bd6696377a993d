#include "weir/admin/detail/pages/core_snapshots.hpp"

#include <new>
#include <utility>

#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::admin {
namespace {

CoreSnapshot snapshot_of(Loop& loop) {
  const Instant begun = loop.platform().now();
  CoreSnapshot snapshot;
  snapshot.timers = loop.timers().armed();
  if (snapshot.timers > 0) snapshot.next_timer = loop.timers().next() - begun;
  snapshot.draining = loop.draining();
  snapshot.servers = report_servers(loop);
  const ConnectTargets* const targets = loop.slots().find<ConnectTargets>();
  if (targets != nullptr) snapshot.targets = targets->all();
  const CoreRoutes* const routes = loop.slots().find<CoreRoutes>();
  if (routes != nullptr) snapshot.routes = routes->all();
  snapshot.at = begun;
  snapshot.took = loop.platform().now() - begun;
  return snapshot;
}

}  // namespace

CoreSnapshots::CoreSnapshots(Loop& any) {
  for (Loop* const each : any.group().loops()) cores_.push_back(std::make_unique<Core>(*each));
  if (cores_.empty()) cores_.push_back(std::make_unique<Core>(any));
}

CoreSnapshots& CoreSnapshots::of(Loop& loop) {
  return loop.group().slots().get<CoreSnapshots>(loop);
}

Task<std::vector<CoreAnswer>> CoreSnapshots::collect() {
  Loop& loop = *(co_await this_context()).loop;
  const Instant begun = loop.platform().now();
  std::vector<std::uint64_t> numbers;
  for (const auto& core : cores_) numbers.push_back(core->ask(begun));
  for (Duration pause = std::chrono::microseconds(50);; pause *= 2) {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < cores_.size(); ++i) missing += !cores_[i]->has_answered(numbers[i]);
    if (missing == 0 || loop.platform().now() - begun >= wait_max) break;
    if (pause > std::chrono::milliseconds(10)) pause = std::chrono::milliseconds(10);
    if (!co_await sleep(pause)) break;
  }
  std::vector<CoreAnswer> answers;
  const Instant now = loop.platform().now();
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    answers.push_back(cores_[i]->answer(numbers[i], now));
  }
  co_return answers;
}

std::uint64_t CoreSnapshots::Core::ask(Instant now) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(asked_, true)) {
    asked_at_ = now;
    loop_.post(*this);
  }
  return snapshots_ + 1;
}

bool CoreSnapshots::Core::has_answered(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return snapshots_ >= number;
}

CoreAnswer CoreSnapshots::Core::answer(std::uint64_t number, Instant now) const {
  const std::lock_guard lock(mutex_);
  const bool answered = snapshots_ >= number;
  return {loop_.core(), answered, answered ? waited_ : now - asked_at_, last_};
}

void CoreSnapshots::Core::run(loop::Runnable& self) {
  auto& core = static_cast<Core&>(self);
  CoreSnapshot snapshot;
  try {
    snapshot = snapshot_of(core.loop_);
  } catch (const std::bad_alloc&) {
    snapshot = {};  // the page then shows nothing of this core
  }
  const std::lock_guard lock(core.mutex_);
  core.last_ = std::move(snapshot);
  core.asked_ = false;
  core.waited_ = core.loop_.platform().now() - core.asked_at_;
  ++core.snapshots_;
}

}  // namespace weir::admin
