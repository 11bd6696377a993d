#include "weir/runtime/pool_keeper.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "weir/runtime/pool_crew.hpp"
#include "weir/runtime/pool_worker.hpp"

namespace weir {
namespace {

// Looking at threads may cost one part in so many of a CPU.
constexpr int cost_share = 20;
// After so many looks that changed nothing, every other one is left out.
constexpr unsigned calm_looks = 8;
// The weight of the last look in the share of blocked threads.
constexpr double look_weight = 0.2;
constexpr Duration clear_again = std::chrono::milliseconds(1);
constexpr Duration without_memory = std::chrono::milliseconds(100);

}  // namespace

std::optional<Instant> PoolKeeper::step() noexcept {
  try {
    return look_after();
  } catch (const std::bad_alloc&) {
    // Whatever was not done is still there to do.
    return after(crew_.host_.now(), without_memory);
  }
}

Instant PoolKeeper::look_after() {
  const bool left = clear_away();
  crew_.call_all();
  const Instant next = watch();
  return left ? std::min(next, after(crew_.host_.now(), clear_again)) : next;
}

bool PoolKeeper::clear_away() {
  std::vector<std::unique_ptr<PoolWorker>> ended;
  {
    const std::lock_guard lock(crew_.mutex_);
    if (crew_.ended_ == 0) return false;
    // Somebody may be about to wake one of them.
    if (!crew_.calls_.none()) return true;
    auto& workers = crew_.workers_;
    const auto first = std::partition(workers.begin(), workers.end(),
                                      [](const auto& worker) { return !worker->ended; });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(workers.end()));
    workers.erase(first, workers.end());
    crew_.ended_ = 0;
  }
  return false;  // they are waited for here, without the mutex
}

/// Returns when to look again.
Instant PoolKeeper::watch() {
  PoolSample sample;
  Duration period{};
  {
    const std::lock_guard lock(crew_.mutex_);
    if (!crew_.size_.automatic() || crew_.closed_ || !crew_.queue_.held_back()) {
      crew_.watched_ = watching_ = false;
      crew_.blocked_now_.reset();
      return never;
    }
    watched_.clear();
    for (const auto& worker : crew_.workers_) {
      if (worker->job != nullptr) watched_.push_back(&worker->watched);
    }
    sample.active = crew_.active_;
    period = crew_.size_.options().sample_period * (calm_ < calm_looks ? 1 : 2);
  }
  const Duration used_before = thread->cpu_time();  // waiting for a CPU is no cost
  const PoolWatch::Seen seen = watch_.look(watched_);
  // Threads that are awake without work are about to have some.
  const auto waking = static_cast<double>(sample.active - std::min(sample.active, watched_.size()));
  sample.running = seen.running + waking;
  sample.at = crew_.host_.now();
  {
    const std::lock_guard lock(crew_.mutex_);
    sample.finished = crew_.queue_.finished_count();
    if (!watching_) {
      watching_ = true;
      calm_ = 0;
      crew_.size_.begin(sample.at, sample.finished);
    } else {
      const std::size_t before = crew_.size_.now();
      crew_.size_.sample(sample);
      calm_ = crew_.size_.now() == before ? calm_ + 1 : 0;
    }
    if (!watched_.empty()) {
      const double blocked = 1.0 - seen.running / static_cast<double>(watched_.size());
      const double before = crew_.blocked_now_.value_or(blocked);
      crew_.blocked_now_ = before + look_weight * (blocked - before);
      crew_.evidence_ = seen.evidence;
    }
  }
  const Duration cost = thread->cpu_time() - used_before;
  crew_.call_all();
  return after(crew_.host_.now(), std::max(period, cost_share * cost));
}

}  // namespace weir
