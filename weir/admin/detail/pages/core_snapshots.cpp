#include "weir/admin/detail/pages/core_snapshots.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "weir/http/client/detail/client_pool.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::admin {
namespace {

/// Adds the connections of one client to one origin.
void add_use(std::vector<TargetUse>& uses, const http::OriginReport& report) {
  auto use = std::ranges::find(uses, report.origin, &TargetUse::origin);
  if (use == uses.end()) {
    use = uses.insert(uses.end(), TargetUse{.origin = std::string(report.origin)});
  }
  use->open += report.open;
  use->idle += report.idle;
  use->waiting += report.waiting;
  use->is_full |= report.waiting > 0 && report.open - report.idle >= report.open_max;
}

std::vector<ConnectTarget> report_targets(Loop& loop, SnapshotBudget& budget) {
  std::vector<ConnectTarget> targets;
  const ConnectTargets* const all = loop.slots().find<ConnectTargets>();
  if (all == nullptr) return targets;
  targets.reserve(all->all().size());
  for (const ConnectTarget& each : all->all()) {
    if (!budget.take()) break;
    targets.push_back(each);
  }
  return targets;
}

std::vector<TargetUse> report_uses(Loop& loop, SnapshotBudget& budget) {
  std::vector<TargetUse> uses;
  const auto* const clients = loop.slots().find<http::CoreClients>();
  if (clients == nullptr) return uses;
  bool more = true;
  const http::ClientPool* each = clients->pools.front();
  for (; each != nullptr && more; each = clients->pools.next(*each)) {
    each->visit_origins([&](const http::OriginReport& report) {
      // The names of more targets are not known.
      more = uses.size() < ConnectTargets::targets_max && budget.take();
      if (more) add_use(uses, report);
      return more;
    });
  }
  return uses;
}

}  // namespace

void SnapshotBudget::begin_part(std::size_t parts) noexcept {
  const Instant now = platform_.now();
  part_left_ = left_ / parts;
  part_end_ = now + std::max(end_ - now, Duration::zero()) / static_cast<std::int64_t>(parts);
}

bool SnapshotBudget::take() noexcept {
  if (part_left_ == 0) return false;
  if (++taken_ % 8 == 0 && platform_.now() >= part_end_) {
    part_left_ = 0;
    return false;
  }
  --part_left_;
  --left_;
  return true;
}

CoreSnapshot make_snapshot(Loop& loop, const SnapshotLimits& limits) {
  const Instant begun = loop.platform().now();
  SnapshotBudget budget(loop.platform(), limits);
  CoreSnapshot snapshot;
  snapshot.timers = loop.timers().armed();
  if (snapshot.timers > 0) snapshot.next_timer = loop.timers().next() - begun;
  snapshot.draining = loop.draining();
  budget.begin_part(2);  // leave something for the servers
  snapshot.targets = report_targets(loop, budget);
  snapshot.uses = report_uses(loop, budget);
  budget.begin_part(1);
  snapshot.servers = report_servers(loop, budget);
  snapshot.at = begun;
  snapshot.took = loop.platform().now() - begun;
  return snapshot;
}

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

CoreSnapshots::Core::Core(Loop& loop)
    : loop::Runnable(&run), loop_(loop), last_(std::make_shared<CoreSnapshot>()) {}

CoreSnapshots::Core::~Core() {
  // relaxed: no other thread uses the object any more.
  delete handed_.load(std::memory_order_relaxed);
}

std::uint64_t CoreSnapshots::Core::ask(Instant now) {
  const std::lock_guard lock(mutex_);
  // acquire pairs with the release in run(): the core reads `asked_at_` no more.
  if (!asked_.load(std::memory_order_acquire)) {
    asked_at_ = now;
    // relaxed: the inbox of the loop orders it before run().
    asked_.store(true, std::memory_order_relaxed);
    loop_.post(*this);
  }
  // relaxed: a snapshot that ends at this moment is new enough.
  return answers_.load(std::memory_order_relaxed) + 1;
}

bool CoreSnapshots::Core::has_answered(std::uint64_t number) const noexcept {
  // acquire pairs with the release in run(): the snapshot of this number was handed over.
  return answers_.load(std::memory_order_acquire) >= number;
}

CoreAnswer CoreSnapshots::Core::answer(std::uint64_t number, Instant now) {
  const std::lock_guard lock(mutex_);
  const bool answered = has_answered(number);
  // acquire pairs with the release in run(): the snapshot is complete.
  CoreSnapshot* const handed = handed_.exchange(nullptr, std::memory_order_acquire);
  if (handed != nullptr) last_.reset(handed);
  // relaxed: has_answered() has ordered it.
  const Duration waited(waited_.load(std::memory_order_relaxed));
  return {loop_.core(), answered, answered ? waited : now - asked_at_, last_};
}

void CoreSnapshots::Core::run(loop::Runnable& self) {
  auto& core = static_cast<Core&>(self);
  try {
    auto made = std::make_unique<CoreSnapshot>(make_snapshot(core.loop_));
    // release pairs with answer(). A snapshot that no page has taken is replaced.
    delete core.handed_.exchange(made.release(), std::memory_order_acq_rel);
  } catch (const std::bad_alloc&) {
    // The pages show the last snapshot.
  }
  const Duration waited = core.loop_.platform().now() - core.asked_at_;
  // relaxed: the release below orders it.
  core.waited_.store(waited.count(), std::memory_order_relaxed);
  core.asked_.store(false, std::memory_order_release);
  core.answers_.fetch_add(1, std::memory_order_release);
}

}  // namespace weir::admin
