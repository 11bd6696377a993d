// How many threads a pool should use: decided upon samples of what they are doing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/time.hpp"
#include "weir/runtime/pool_options.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"

namespace weir {

/// What a pool looks like at a moment.
struct PoolSample {
  Instant at{};
  std::size_t active = 0;  ///< threads that have work or are about to look for it
  /// About so many of those are on a CPU or wait for one. That one waits for a CPU because other
  /// programs use them all makes no difference: one more would wait too.
  double running = 0;
  std::uint64_t finished = 0;  ///< work done since the pool began
};

/// What a pool runs on.
struct PoolMachine {
  std::size_t cpus = 1;            ///< that may run threads of the pool at once
  std::size_t threads_max = 1024;  ///< see Host::threads_max()
};

/// The size of a pool, told what happens and when: it reads no clock and knows no thread.
///
/// Automatic: the size begins at one thread for each CPU. While work is queued,
/// - and no thread runs, it doubles: what sleeps costs no CPU, and the doubling reaches any number
///   before long;
/// - and fewer run than there are CPUs, it grows in the proportion that is lacking, at most
///   doubling; if then neither more threads run nor more work gets done (they wait for each other,
///   or for one disk), it goes back, and tries again after a while that doubles each time;
/// - and far more run than there are CPUs (more than three for each, for a while), it shrinks by
///   those that are too many, at most halving, down to one for each CPU. Some more do no harm: the
///   loops take the CPU from them. But each CPU without work is work not done.
/// Lack and excess are summed up over samples (CUSUM; E. S. Page: "Continuous inspection schemes",
/// 1954): much of it tells at once, little of it after a while, and what comes and goes not at all.
///
/// Growing waits for the verdict on the last time, if work gets finished at all. When the queue is
/// empty and threads find nothing to do, it falls to twice the threads that have work: a burst of
/// computations that comes next must not find a thousand threads waiting for it.
/// Threads: one at a time.
class PoolSize {
 public:
  PoolSize(const PoolSizeOptions& options, const PoolMachine& machine, Instant now);

  /// Threads that may have work at once.
  std::size_t now() const noexcept { return size_; }
  bool automatic() const noexcept { return options_.fixed == 0; }
  /// Threads that are kept when they have no work.
  std::size_t kept() const noexcept { return automatic() ? options_.min : options_.fixed; }
  const PoolSizeOptions& options() const noexcept { return options_; }
  const SizeChange& last_change() const noexcept { return last_change_; }

  void set(const PoolSizeOptions& options, Instant now);
  /// From now on not less than `threads`, unless that is a fixed size.
  void need(std::size_t threads, Instant now);
  /// Work has begun to queue: what was seen before tells nothing about it.
  void begin(Instant now, std::uint64_t finished);
  /// About once in a sample period while work is queued.
  void sample(const PoolSample& sample);
  /// A thread found nothing to do, nothing is queued, and `active` others are left.
  void rested(std::size_t active, Instant now);
  /// The host could not start one more than `threads`: for a second the size is not larger.
  void no_thread_left(std::size_t threads, Instant now);
  /// When work comes or ends: a fixed size that no_thread_left() has cut is whole again after that
  /// second. (An automatic one grows by samples.)
  void try_again(Instant now);

 private:
  /// An enlargement that has yet to show that it was of use.
  struct Trial {
    std::size_t from;
    double rate;     // of finished work per second, before
    double running;  // on average, before
    bool all_blocked;
  };
  std::size_t base() const noexcept;
  std::size_t max(Instant now) const noexcept;
  void change(std::size_t to, SizeReason reason, const PoolSample& sample);
  double rate(const PoolSample& sample) const noexcept;
  double running() const noexcept;
  bool gained(const Trial& trial, const PoolSample& sample) const noexcept;
  void judge(const PoolSample& sample);
  void grow(const PoolSample& sample);
  void shrink(const PoolSample& sample);

  PoolSizeOptions options_;
  std::size_t cpus_;
  std::size_t threads_max_;
  std::size_t needed_ = 1;
  std::size_t size_ = 0;
  SizeChange last_change_;
  // Since the last change, or since work began to queue:
  Instant since_{};
  std::uint64_t finished_before_ = 0;
  double lack_ = 0;  // of running threads, as parts of all CPUs, summed up
  double excess_ = 0;
  double running_sum_ = 0;
  unsigned samples_ = 0;
  std::optional<Trial> trial_;
  Instant hold_until_ = Instant::min();  // after an enlargement that was of no use
  Duration hold_{};
  std::size_t ceiling_ = 0;  // what the host could start
  Instant ceiling_until_ = Instant::min();
};

}  // namespace weir
