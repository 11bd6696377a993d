// Exercises a pool for blocking work that several cores share: its lanes, its size, and its report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

struct PoolScenarioOptions {
  BlockingPoolOptions pool;
  std::vector<PoolLaneOptions> lanes;  ///< lanes beside the default one
  std::size_t jobs = 15;               ///< number of jobs of each task
  bool impatient = true;               ///< true: some callers give up
  /// Changes what a lane reports. The test must find a violation then.
  void (*change)(PoolReport& report) = nullptr;

  /// Draws options. Some pools have one thread, which makes the order of their jobs predictable.
  static PoolScenarioOptions draw(sim::Random& random);
  /// Returns true if one thread does all work in the order of priority and arrival.
  bool is_ordered() const noexcept { return pool.size.fixed == 1 && !impatient; }
};

/// The test requires these rules:
/// - a call returns its own result or exception, or is cancelled or rejected;
/// - a call is rejected only by a full queue whose callers do not wait;
/// - the report counts each call exactly once, at any time;
/// - the size, the threads and the lanes keep their limits;
/// - one thread takes the oldest job of the highest priority;
/// - idle threads end, and a closed pool rejects work.
/// Threads: those of one World.
/// Lifetime: outlives the run of its cores.
class PoolScenario {
 public:
  PoolScenario(PoolScenarioOptions options, unsigned cores);

  /// The main function: creates the pool, and runs the tasks on all cores.
  int run(loop::Platform& host);
  /// Checks the report; for sim::World::always().
  std::string find_wrong_report();
  std::string find_violation() const;
  /// Returns the number of calls that have ended.
  std::size_t done() const noexcept { return done_; }

 private:
  struct Counts {
    std::uint64_t submitted = 0;
    std::uint64_t called = 0;
    std::uint64_t rejected = 0;
    std::uint64_t timed_out = 0;
  };
  /// Priority (negative), order of arrival.
  using Order = std::tuple<int, std::uint64_t>;
  struct Failure {
    std::uint64_t id;
  };

  Task<> run_core(Scope& scope);
  Task<> submit_jobs(loop::PlatformClock& clock);
  Task<> submit(sim::Random& random, std::size_t lane);
  Task<> rest();
  std::uint64_t call(std::size_t lane, std::uint64_t id);
  const PoolLaneOptions& options_of(std::size_t lane) const;
  std::string find_wrong_lane(const PoolLaneReport& report, std::size_t lane) const;
  std::string find_wrong_end();
  std::size_t reserved_threads() const;
  void fail_with(std::string_view what);

  PoolScenarioOptions options_;
  unsigned cores_;
  BlockingPool* pool_ = nullptr;
  std::vector<PoolLane> lanes_;
  std::vector<Counts> counts_;
  std::set<Order> queued_;  // jobs that have not been called, if their order is predictable
  std::optional<Order> next_;
  std::size_t size_max_ = 0;  // largest size that was ever permitted
  std::uint64_t last_id_ = 0;
  std::size_t tasks_ = 0;
  std::size_t done_ = 0;
  bool ended_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
