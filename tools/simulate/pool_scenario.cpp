// Calls of a pool, and the rules for its report.
#include "tools/simulate/pool_scenario.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t tasks_per_core = 4;
constexpr Duration idle_timeout = std::chrono::seconds(2);
constexpr std::uint64_t failing = 11;  // every job whose number is a multiple fails

std::uint64_t result_of(std::uint64_t id) {
  return 3 * id + 1;
}

PoolLaneOptions draw_lane(sim::Random& random, const std::string& name) {
  constexpr std::array<std::size_t, 4> capacities{0, 1, 3, 4096};
  constexpr std::array<double, 4> shares{0, 0.4, 0.5, 1};
  PoolLaneOptions lane;
  lane.name = name;
  lane.capacity = random.one_of(capacities);
  lane.overflow_policy = random.bernoulli(0.3) ? OverflowPolicy::wait : OverflowPolicy::reject;
  lane.priority = static_cast<int>(random.below(3)) - 1;
  lane.share_max = random.one_of(shares);
  lane.reserved_threads = random.below(3);
  if (random.bernoulli(0.3)) lane.concurrency_max = 1 + random.below(2);
  return lane;
}

}  // namespace

PoolScenarioOptions PoolScenarioOptions::draw(sim::Random& random) {
  PoolScenarioOptions options;
  options.pool.name = "pool";
  options.pool.size.idle_timeout = idle_timeout;
  options.pool.size.min = 1 + random.below(2);
  options.pool.size.max = options.pool.size.min + random.below(4);
  options.pool.lane = draw_lane(random, "work");
  const std::size_t lanes = random.below(3);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    options.lanes.push_back(draw_lane(random, "lane " + std::to_string(lane)));
  }
  if (random.bernoulli(0.5)) options.pool.size.fixed = 1 + random.below(4);
  if (random.bernoulli(0.4)) {
    options.impatient = false;
    options.pool.size.fixed = 1;
    const auto simplify = [](PoolLaneOptions& lane) {
      lane.capacity = 4096;
      lane.reserved_threads = 0;
      lane.concurrency_max = PoolLaneOptions::unlimited;
    };
    simplify(options.pool.lane);
    for (PoolLaneOptions& lane : options.lanes) simplify(lane);
  }
  return options;
}

PoolScenario::PoolScenario(PoolScenarioOptions options, unsigned cores)
    : options_(std::move(options)), cores_(cores), counts_(1 + options_.lanes.size()) {
  const PoolSizeOptions& size = options_.pool.size;
  size_max_ = size.fixed > 0 ? size.fixed : size.max;
}

void PoolScenario::fail_with(std::string_view what) {
  if (violation_.empty()) violation_ = what;
}

const PoolLaneOptions& PoolScenario::options_of(std::size_t lane) const {
  return lane == 0 ? options_.pool.lane : options_.lanes[lane - 1];
}

std::size_t PoolScenario::reserved_threads() const {
  std::size_t all = options_.pool.lane.reserved_threads;
  for (const PoolLaneOptions& lane : options_.lanes) all += lane.reserved_threads;
  return all;
}

int PoolScenario::run(loop::Platform& host) {
  BlockingPool pool(host, options_.pool);
  pool_ = &pool;
  lanes_ = {pool.default_lane()};
  for (const PoolLaneOptions& lane : options_.lanes) lanes_.push_back(pool.add_lane(lane));
  const int status =
      Runtime(host, {.cores = cores_, .announce = false}).run_on_each_core([this](Scope& scope) {
        return run_core(scope);
      });
  pool_ = nullptr;
  return status;
}

Task<> PoolScenario::run_core(Scope& scope) {
  loop::PlatformClock& clock = scope.loop().platform();
  for (std::size_t task = 0; task < tasks_per_core; ++task) {
    ++tasks_;
    scope.spawn(submit_jobs(clock));
  }
  if (scope.loop().core() == 0) scope.spawn(rest());
  co_return;
}

/// Runs on a thread of the pool.
std::uint64_t PoolScenario::call(std::size_t lane, std::uint64_t id) {
  ++counts_[lane].called;
  if (options_.is_ordered()) {
    const Order own{-options_of(lane).priority, id};
    if (next_ && *next_ != own) fail_with("a job was called before its turn");
    queued_.erase(own);
    // The thread takes its next job when this one returns.
    next_.reset();
    if (!queued_.empty()) next_ = *queued_.begin();
  }
  if (id % failing == 0) throw Failure{id};
  return result_of(id);
}

Task<> PoolScenario::submit(sim::Random& random, std::size_t lane) {
  const std::uint64_t id = ++last_id_;
  ++counts_[lane].submitted;
  if (options_.is_ordered()) queued_.insert({-options_of(lane).priority, id});
  const auto job = [this, lane, id] { return call(lane, id); };
  Result<std::uint64_t> result;
  std::optional<std::uint64_t> failed;
  const bool impatient = options_.impatient && random.bernoulli(0.3);
  const PoolLaneOptions& options = options_of(lane);
  const bool may_reject = options.overflow_policy == OverflowPolicy::reject &&
                          pool_->report().lanes[lane].queued >= options.capacity;
  try {
    auto running = lanes_[lane].run(job);
    if (impatient) {
      const Duration patience = random.between({}, std::chrono::milliseconds(20));
      result = co_await timeout(patience, std::move(running));
    } else {
      result = co_await std::move(running);
    }
  } catch (const Failure& failure) {
    failed = failure.id;
  }
  ++done_;
  if (failed) {
    if (*failed != id) fail_with("a call got the exception of another one");
  } else if (result) {
    if (*result != result_of(id) || id % failing == 0) fail_with("a call got a wrong result");
  } else if (result.error() == Errc::timed_out && impatient) {
    ++counts_[lane].timed_out;
  } else if (result.error() == Errc::limit_reached) {
    ++counts_[lane].rejected;
    if (!may_reject) fail_with("a call was rejected although its queue was not full");
  } else {
    fail_with("a call failed: " + result.error().message());
  }
}

Task<> PoolScenario::submit_jobs(loop::PlatformClock& clock) {
  sim::Random random(clock.random());
  for (std::size_t left = options_.jobs; left > 0; --left) {
    co_await submit(random, random.below(lanes_.size()));
    if (random.bernoulli(0.3)) {
      std::ignore = co_await sleep(random.between({}, std::chrono::milliseconds(50)));
    }
    if (!options_.is_ordered() && random.bernoulli(0.05)) {
      PoolSizeOptions size = options_.pool.size;
      size.min = 1 + random.below(2);
      size.max = size.min + random.below(4);
      if (size.fixed > 0) size.fixed = 1 + random.below(4);
      size_max_ = std::max(size_max_, size.fixed > 0 ? size.fixed : size.max);
      options_.pool.size = size;
      pool_->resize(size);
    }
  }
  --tasks_;
}

/// Waits until all tasks have ended, and then for the end of idle threads.
Task<> PoolScenario::rest() {
  auto slept = co_await sleep(std::chrono::seconds(1));
  while (slept && tasks_ > 0) slept = co_await sleep(std::chrono::seconds(1));
  slept = co_await sleep(10 * idle_timeout);
  fail_with(find_wrong_end());
  pool_->close();
  const auto closed = co_await lanes_.front().run(result_of, std::uint64_t{1});
  if (closed || closed.error() != Errc::closed) fail_with("a closed pool took a job");
  ended_ = true;
}

/// Checks the report after all calls have ended, and idle threads too.
std::string PoolScenario::find_wrong_end() {
  const PoolReport report = pool_->report();
  if (report.queued != 0 || report.running != 0) return "work is left after the end";
  const PoolSizeOptions& size = options_.pool.size;
  const std::size_t kept = size.fixed > 0 ? size.fixed + reserved_threads() : size.min;
  if (report.threads > kept) {
    return std::to_string(report.threads) + " threads are left instead of " + std::to_string(kept);
  }
  for (std::size_t lane = 0; lane < counts_.size(); ++lane) {
    const Counts& counts = counts_[lane];
    const PoolLaneReport& its = report.lanes[lane];
    const bool waits = options_of(lane).overflow_policy == OverflowPolicy::wait;
    if (its.finished != counts.called) return its.name + ": wrong number of finished calls";
    if (its.rejected != counts.rejected) return its.name + ": wrong number of rejected calls";
    if (its.cancelled != counts.timed_out) return its.name + ": wrong number of cancelled calls";
    if (!waits && its.waited_for_room != 0) return its.name + ": a call has waited for room";
  }
  return {};
}

std::string PoolScenario::find_wrong_lane(const PoolLaneReport& report, std::size_t lane) const {
  const PoolLaneOptions& options = options_of(lane);
  const auto shared =
      static_cast<std::size_t>(std::ceil(options.share_max * static_cast<double>(size_max_)));
  const std::size_t threads_max = std::min(
      options.concurrency_max, options.reserved_threads + std::max<std::size_t>(shared, 1));
  if (report.running > threads_max) return report.name + ": too many jobs run";
  // Free threads may be about to take as many jobs again.
  const bool waits = options.overflow_policy == OverflowPolicy::wait;
  const std::size_t queue_bound = options.capacity + size_max_ + reserved_threads();
  if (!waits && report.queued > queue_bound) return report.name + ": too many jobs are queued";
  const std::uint64_t known =
      report.finished + report.running + report.queued + report.cancelled + report.rejected;
  const std::uint64_t submitted = counts_[lane].submitted;
  if (known != submitted) {
    return report.name + ": " + std::to_string(known) + " calls instead of " +
           std::to_string(submitted);
  }
  const std::uint64_t taken = report.finished + report.running;
  if (report.queue_wait.count < report.finished || report.queue_wait.count > taken) {
    return report.name + ": wrong number of waits";
  }
  if (report.run_time.count != report.finished) return report.name + ": wrong number of runs";
  const auto is_sum = [](const DurationSum& sum) {
    return sum.longest >= sum.mean() && sum.total >= sum.longest && sum.longest >= Duration::zero();
  };
  if (!is_sum(report.queue_wait) || !is_sum(report.run_time)) return report.name + ": wrong times";
  return {};
}

std::string PoolScenario::find_wrong_report() {
  if (pool_ == nullptr || ended_) return {};
  PoolReport report = pool_->report();
  if (options_.change != nullptr) options_.change(report);
  if (report.size == 0 || report.size > size_max_) return "wrong size";
  if (options_.pool.size.fixed > 0 && report.size != options_.pool.size.fixed) {
    return "a fixed size has changed";
  }
  if (report.threads > size_max_ + reserved_threads()) return "too many threads";
  if (report.running > report.threads) return "more work runs than there are threads";
  std::size_t queued = 0;
  std::size_t running = 0;
  for (std::size_t lane = 0; lane < report.lanes.size(); ++lane) {
    queued += report.lanes[lane].queued;
    running += report.lanes[lane].running;
    const std::string wrong = find_wrong_lane(report.lanes[lane], lane);
    if (!wrong.empty()) return wrong;
  }
  if (queued != report.queued || running != report.running) return "the sums of lanes are wrong";
  return {};
}

std::string PoolScenario::find_violation() const {
  return violation_.empty() && !ended_ ? "the pool was not used to the end" : violation_;
}

}  // namespace weir::simulate
