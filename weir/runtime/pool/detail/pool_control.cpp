#include "weir/runtime/pool/detail/pool_control.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "weir/runtime/pool/detail/pool_threads.hpp"

namespace weir {
namespace {

// Sampling may cost this fraction of a CPU: one part in `cost_divisor`.
constexpr int cost_divisor = 20;
// After this number of samples without a change, every other sample is skipped.
constexpr unsigned unchanged_samples_max = 8;
// Weight of the last sample in the share of blocked threads.
constexpr double sample_weight = 0.2;
constexpr Duration free_retry = std::chrono::milliseconds(1);
constexpr Duration out_of_memory_retry = std::chrono::milliseconds(100);

}  // namespace

std::optional<Instant> PoolController::step() noexcept {
  try {
    return run_step();
  } catch (const std::bad_alloc&) {
    // Unfinished work remains for the next step.
    return after(threads_.platform_.now(), out_of_memory_retry);
  }
}

Instant PoolController::run_step() {
  const bool left = free_ended_threads();
  const bool samples = threads_.sampling_requested();
  threads_.start_requested_threads();
  if (samples) threads_.start_needed_threads();
  const Instant next = samples ? take_sample() : never;
  return left ? std::min(next, after(threads_.platform_.now(), free_retry)) : next;
}

bool PoolController::free_ended_threads() {
  std::vector<std::unique_ptr<PoolWorker>> ended;
  {
    const std::lock_guard lock(threads_.mutex_);
    if (threads_.ended_ == 0) return false;
    // A call may be about to wake one of them.
    if (!threads_.calls_.none()) return true;
    auto& workers = threads_.workers_;
    const auto first = std::partition(workers.begin(), workers.end(),
                                      [](const auto& worker) { return !worker->ended; });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(workers.end()));
    workers.erase(first, workers.end());
    threads_.ended_ = 0;
  }
  return false;  // their threads are joined here, without the mutex
}

/// Returns the time of the next sample.
Instant PoolController::take_sample() {
  PoolSample sample;
  Duration period{};
  {
    const std::lock_guard lock(threads_.mutex_);
    if (!threads_.size_.automatic() || threads_.closed_ || !threads_.queue_.has_backlog()) {
      threads_.sampling_requested_ = sampling_ = false;
      threads_.blocked_now_.reset();
      return never;
    }
    sampled_.clear();
    for (const auto& worker : threads_.workers_) {
      if (worker->job != nullptr) sampled_.push_back(&worker->sampled);
    }
    sample.active = threads_.active_;
    period = threads_.size_.options().sample_period *
             (unchanged_samples_ < unchanged_samples_max ? 1 : 2);
  }
  const Duration used_before = thread->cpu_time();  // waiting for a CPU is no cost
  const PoolSampler::Estimate estimate = sampler_.sample(sampled_);
  // Threads that are awake without work are about to take some.
  const auto waking = static_cast<double>(sample.active - std::min(sample.active, sampled_.size()));
  sample.running = estimate.running + waking;
  sample.at = threads_.platform_.now();
  {
    const std::lock_guard lock(threads_.mutex_);
    sample.finished = threads_.queue_.finished_count();
    if (!sampling_) {
      sampling_ = true;
      unchanged_samples_ = 0;
      threads_.size_.begin(sample.at, sample.finished);
    } else {
      const std::size_t before = threads_.size_.now();
      threads_.size_.sample(sample);
      unchanged_samples_ = threads_.size_.now() == before ? unchanged_samples_ + 1 : 0;
    }
    if (!sampled_.empty()) {
      const double blocked = 1.0 - estimate.running / static_cast<double>(sampled_.size());
      const double before = threads_.blocked_now_.value_or(blocked);
      threads_.blocked_now_ = before + sample_weight * (blocked - before);
      threads_.evidence_ = estimate.evidence;
    }
  }
  const Duration cost = thread->cpu_time() - used_before;
  threads_.start_needed_threads();
  return after(threads_.platform_.now(), std::max(period, cost_divisor * cost));
}

namespace {

constexpr std::size_t states_max = 16;  // of each kind
constexpr unsigned idle_samples_max = 8;

}  // namespace

PoolSampler::Estimate PoolSampler::sample(std::span<SampledThread* const> threads) {
  active_.clear();
  idle_.clear();
  for (SampledThread* const each : threads) {
    const Duration now = each->thread->cpu_time();
    const bool moved = now != each->cpu_time;
    each->cpu_time = now;
    each->idle_samples = moved ? 0 : each->idle_samples + 1;
    (moved ? active_ : idle_).push_back(each);
  }
  ++samples_;
  states_known_ = false;
  const double running = running_among(active_) + running_among(idle_);
  if (threads.empty()) return {};
  return {running, states_known_ ? SizeEvidence::thread_states : SizeEvidence::cpu_clocks};
}

double PoolSampler::running_among(std::span<SampledThread* const> threads) {
  if (threads.empty()) return 0;
  const std::size_t count = std::min(threads.size(), states_max);
  // Spread the samples evenly, with a different start each time.
  const std::size_t stride = threads.size() / count;
  std::size_t running = 0;
  for (std::size_t i = 0; i < count; ++i) {
    SampledThread& each = *threads[(samples_ + i * stride) % threads.size()];
    const os::ThreadState state = each.thread->state();
    if (state != os::ThreadState::unknown) states_known_ = true;
    const bool runs = state == os::ThreadState::unknown ? each.idle_samples < idle_samples_max
                                                        : state == os::ThreadState::running;
    // relaxed: it guards nothing, and a slightly old value is harmless.
    running += runs || !each.in_work.load(std::memory_order_relaxed) ? 1 : 0;
  }
  return static_cast<double>(running) * static_cast<double>(threads.size()) /
         static_cast<double>(count);
}

}  // namespace weir
