// Decides how many threads a pool should use, from samples of what the threads do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/time.hpp"
#include "weir/runtime/pool/pool_options.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

/// A PoolSample is the state of a pool at one moment.
struct PoolSample {
  Instant at{};
  std::size_t active = 0;  ///< threads that have work or are about to look for it
  /// Estimated number of active threads that are on a CPU or wait for one. It does not matter if
  /// other programs use the CPUs: one more thread would wait too.
  double running = 0;
  std::uint64_t finished = 0;  ///< work completed since the pool began
};

/// PoolMachine is the hardware that a pool runs on.
struct PoolMachine {
  std::size_t cpus = 1;            ///< CPUs that may run threads of the pool at the same time
  std::size_t threads_max = 1024;  ///< see Platform::threads_max()
};

/// PoolSize computes the size of a pool from events and times that the caller passes; it uses no
/// clock and no thread.
///
/// An automatic size begins at one thread for each CPU. It changes while work is queued:
/// - It doubles if no thread runs: sleeping threads cost no CPU, and doubling reaches any number
///   quickly.
/// - It grows in proportion to the lack if fewer threads run than there are CPUs, at most to
///   twice its value. If then neither more threads run nor more work completes, the threads wait
///   for each other or for one disk. The size goes back, and growing is tried again after a pause
///   that doubles each time.
/// - It shrinks by the excess if far more threads run than there are CPUs (more than three for
///   each, for a while). It at most halves and never falls below one thread for each CPU. A
///   small excess is harmless, because the loops take the CPU from these threads, but a CPU
///   without work is wasted.
///
/// Lack and excess are summed over samples (CUSUM; E. S. Page: "Continuous inspection schemes",
/// 1954). A large deviation acts immediately, a small one after a while, and a fluctuation not at
/// all.
///
/// Growth waits for the verdict on the previous growth, if work completes at all. If the queue is
/// empty and threads find nothing to do, the size falls to twice the number of threads with work.
/// A later burst of computations must not find a thousand waiting threads.
/// Threads: one at a time.
class PoolSize {
 public:
  PoolSize(const PoolSizeOptions& options, const PoolMachine& machine, Instant now);

  /// Returns the number of threads that may have work at the same time.
  std::size_t now() const noexcept { return size_; }
  bool automatic() const noexcept { return options_.fixed == 0; }
  /// Returns the number of threads that are kept when they have no work.
  std::size_t kept() const noexcept { return automatic() ? options_.min : options_.fixed; }
  const PoolSizeOptions& options() const noexcept { return options_; }
  const SizeChange& last_change() const noexcept { return last_change_; }

  void set(const PoolSizeOptions& options, Instant now);
  /// Raises an automatic size to at least `threads`, permanently.
  void require(std::size_t threads, Instant now);
  /// Starts a new observation because work has begun to queue.
  void begin(Instant now, std::uint64_t finished);
  /// Evaluates a sample; called about once in each sample period while work is queued.
  void sample(const PoolSample& sample);
  /// Reports that a thread found nothing to do, that nothing is queued, and that `active` others
  /// are left.
  void on_idle(std::size_t active, Instant now);
  /// Limits the size to `threads` for one second, because the platform could not start one more.
  void on_thread_limit(std::size_t threads, Instant now);
  /// Restores a fixed size that on_thread_limit() has reduced, after that second; called when
  /// work arrives or ends. An automatic size grows by samples instead.
  void retry(Instant now);

 private:
  /// A Trial is a growth whose benefit is not yet known.
  struct Trial {
    std::size_t from;
    double rate;     // finished work per second, before
    double running;  // average number of running threads, before
    bool all_blocked;
  };
  std::size_t base() const noexcept;
  std::size_t max(Instant now) const noexcept;
  void change(std::size_t to, SizeReason reason, const PoolSample& sample);
  double rate(const PoolSample& sample) const noexcept;
  double running() const noexcept;
  bool improved(const Trial& trial, const PoolSample& sample) const noexcept;
  void evaluate_trial(const PoolSample& sample);
  void grow(const PoolSample& sample);
  void shrink(const PoolSample& sample);

  PoolSizeOptions options_;
  std::size_t cpus_;
  std::size_t threads_max_;
  std::size_t needed_ = 1;
  std::size_t size_ = 0;
  SizeChange last_change_;
  // Values since the last change, or since work began to queue.
  Instant since_{};
  std::uint64_t finished_before_ = 0;
  double lack_ = 0;  // lack of running threads relative to all CPUs, summed
  double excess_ = 0;
  double running_sum_ = 0;
  unsigned samples_ = 0;
  std::optional<Trial> trial_;
  Instant hold_until_ = Instant::min();  // end of the pause after a growth without benefit
  Duration hold_{};
  std::size_t ceiling_ = 0;  // number of threads that the platform could start
  Instant ceiling_until_ = Instant::min();
};

}  // namespace weir
