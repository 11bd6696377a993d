#include "weir/runtime/pool/detail/pool_size.hpp"

#include <algorithm>
#include <cmath>

namespace weir {
namespace {

// Running threads are counted by samples: less than half a thread counts as none.
constexpr double half = 0.5;
// Normal lack and excess, relative to all CPUs, and limits for the sums of what exceeds them. All
// CPUs idle: acts immediately. Half of them: after two samples. A tenth of them: after ten. In a
// mix of sleeping and computing work, threads that were added to keep the CPUs busy sometimes all
// compute. At most three for each CPU are therefore normal; five for each CPU are too many after
// three samples.
constexpr double lack_normal = 0.05;
constexpr double lack_max = 0.5;
constexpr double excess_normal = 2;
constexpr double excess_max = 4;
// A growth is judged when this number of jobs for each thread before it has finished. The new
// threads have had their first results by then. It must bring a fifth of its possible gain.
constexpr std::uint64_t verdict_after = 3;
constexpr double gain_min = 0.2;
// If work is too slow for that, growth continues after this number of sample periods. It
// continues sooner if no thread runs, because a CPU is then idle for certain.
constexpr int trial_periods = 10;
constexpr int trial_periods_all_blocked = 4;
constexpr Duration hold_first = std::chrono::milliseconds(100);
constexpr Duration hold_max = std::chrono::seconds(5);
constexpr Duration ceiling_time = std::chrono::seconds(1);

double seconds(Duration length) {
  return std::chrono::duration<double>(length).count();
}

std::size_t scaled(std::size_t count, double factor) {
  return static_cast<std::size_t>(std::ceil(static_cast<double>(count) * factor));
}

}  // namespace

PoolSize::PoolSize(const PoolSizeOptions& options, const PoolMachine& machine, Instant now)
    : cpus_(std::max<std::size_t>(machine.cpus, 1)), threads_max_(machine.threads_max) {
  set(options, now);
  last_change_ = {now, 0, size_, SizeReason::started};
}

std::size_t PoolSize::base() const noexcept {
  if (!automatic()) return options_.fixed;
  return std::clamp(std::max(cpus_, needed_), options_.min, options_.max);
}

std::size_t PoolSize::max(Instant now) const noexcept {
  if (now >= ceiling_until_) return options_.max;
  return std::clamp<std::size_t>(ceiling_, 1, options_.max);
}

void PoolSize::set(const PoolSizeOptions& options, Instant now) {
  options_ = options;
  options_.min = std::max<std::size_t>(options_.min, 1);
  options_.max = std::max(options_.max == 0 ? threads_max_ : options_.max, options_.min);
  ceiling_until_ = Instant::min();
  change(base(), SizeReason::set, {.at = now, .finished = finished_before_});
}

void PoolSize::require(std::size_t threads, Instant now) {
  needed_ = std::max(needed_, threads);
  if (size_ < base()) change(base(), SizeReason::set, {.at = now, .finished = finished_before_});
}

void PoolSize::change(std::size_t to, SizeReason reason, const PoolSample& sample) {
  if (to == size_) return;
  last_change_ = {sample.at, size_, to, reason};
  size_ = to;
  begin(sample.at, sample.finished);
}

void PoolSize::begin(Instant now, std::uint64_t finished) {
  since_ = now;
  finished_before_ = finished;
  lack_ = excess_ = running_sum_ = 0;
  samples_ = 0;
  trial_.reset();
}

void PoolSize::sample(const PoolSample& sample) {
  if (!automatic()) return;
  ++samples_;
  running_sum_ += sample.running;
  evaluate_trial(sample);
  const double more = sample.running / static_cast<double>(cpus_) - 1;
  lack_ = std::max(0.0, lack_ - more - lack_normal);
  excess_ = std::max(0.0, excess_ + more - excess_normal);
  if (lack_ > lack_max && more < 0) grow(sample);
  if (excess_ > excess_max) shrink(sample);
}

double PoolSize::rate(const PoolSample& sample) const noexcept {
  const Duration length = sample.at - since_;
  if (length <= Duration(0)) return 0;
  return static_cast<double>(sample.finished - finished_before_) / seconds(length);
}

double PoolSize::running() const noexcept {
  return samples_ == 0 ? 0 : running_sum_ / samples_;
}

bool PoolSize::improved(const Trial& trial, const PoolSample& sample) const noexcept {
  const double larger = static_cast<double>(size_) / static_cast<double>(trial.from) - 1;
  if (rate(sample) >= trial.rate * (1 + gain_min * larger)) return true;
  // If computing takes long, more threads run long before more work is finished.
  const double could = std::min(static_cast<double>(cpus_) - trial.running, trial.running * larger);
  return trial.running > half && running() >= trial.running + gain_min * could;
}

void PoolSize::evaluate_trial(const PoolSample& sample) {
  if (!trial_) return;
  const std::uint64_t finished = sample.finished - finished_before_;
  const Duration length = sample.at - since_;
  const int periods = trial_->all_blocked ? trial_periods_all_blocked : trial_periods;
  if (finished >= verdict_after * trial_->from) {
    const Trial trial = *trial_;
    trial_.reset();
    if (improved(trial, sample)) {
      hold_ = Duration(0);
      return;
    }
    hold_ = std::clamp(2 * hold_, hold_first, hold_max);
    hold_until_ = after(sample.at, hold_);
    change(trial.from, SizeReason::no_gain, sample);
  } else if (finished == 0 || length >= periods * options_.sample_period) {
    trial_.reset();
  }
}

void PoolSize::grow(const PoolSample& sample) {
  const bool all_blocked = sample.running < half;
  if (trial_ || (!all_blocked && sample.at < hold_until_)) return;
  // Lanes at their share make fewer threads active than the size; shrinking leaves more active.
  const std::size_t present = std::max(size_, sample.active);
  const double factor = all_blocked ? 2.0 : static_cast<double>(cpus_) / sample.running;
  std::size_t to = std::clamp(scaled(present, factor), present + 1, 2 * present);
  to = std::min(to, max(sample.at));
  if (to <= size_) return;
  const Trial trial{size_, rate(sample), running(), all_blocked};
  change(to, all_blocked ? SizeReason::all_blocked : SizeReason::some_blocked, sample);
  trial_ = trial;
}

void PoolSize::shrink(const PoolSample& sample) {
  excess_ = 0;
  // Blocked threads are not counted: they are not the excess.
  const double left = static_cast<double>(sample.active + cpus_) - sample.running;
  const auto to =
      static_cast<std::size_t>(std::max(left, half * static_cast<double>(sample.active)));
  if (std::max(base(), to) < size_)
    change(std::max(base(), to), SizeReason::too_many_running, sample);
}

void PoolSize::on_idle(std::size_t active, Instant now) {
  if (!automatic()) return;
  const std::size_t to = std::max(base(), 2 * active);
  if (to < size_) {
    change(to, SizeReason::little_work, {.at = now, .finished = finished_before_});
  }
}

void PoolSize::on_thread_limit(std::size_t threads, Instant now) {
  ceiling_ = threads;
  ceiling_until_ = after(now, ceiling_time);
  const std::size_t to = std::max<std::size_t>(threads, 1);
  if (to < size_) {
    change(to, SizeReason::no_threads_left, {.at = now, .finished = finished_before_});
  }
}

void PoolSize::retry(Instant now) {
  if (automatic() || size_ >= options_.fixed || now < ceiling_until_) return;
  change(options_.fixed, SizeReason::retry, {.at = now, .finished = finished_before_});
}

}  // namespace weir
