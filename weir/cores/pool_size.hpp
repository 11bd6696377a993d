// How many threads a pool should use: decided upon samples of what they are doing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/cores/pool_options.hpp"
#include "weir/cores/pool_report.hpp"

namespace weir {

/// What a pool looks like at a moment.
struct PoolSample {
  Instant at{};
  std::size_t queued = 0;      ///< work without a thread
  std::size_t active = 0;      ///< threads that have work or are about to look for it
  double running = 0;          ///< about so many of those are on a CPU or wait for one
  std::uint64_t finished = 0;  ///< work done since the pool began
};

/// The size of a pool, told what happens and when: it reads no clock and knows no thread.
/// Threads: one at a time.
class PoolSize {
 public:
  /// `cpus`: that may run threads of the pool at once.
  PoolSize(const PoolSizeOptions& options, std::size_t cpus, Instant now);

  /// Threads that may have work at once.
  std::size_t now() const noexcept { return size_; }
  bool automatic() const noexcept { return options_.fixed == 0; }
  /// Threads that are kept when they have no work.
  std::size_t kept() const noexcept { return automatic() ? options_.min : options_.fixed; }
  const PoolSizeOptions& options() const noexcept { return options_; }
  const SizeChange& last_change() const noexcept { return last_change_; }

  void set(const PoolSizeOptions& options, Instant now);
  /// While work is queued, about once in a sample period.
  void sample(const PoolSample& sample);
  /// A thread found nothing to do and `active` others are left.
  void rested(std::size_t active, Instant now);
  /// The host could not start one more than `threads`.
  void no_thread_left(std::size_t threads, Instant now);

 private:
  std::size_t base() const noexcept;
  void change(std::size_t to, SizeReason reason, Instant now);

  PoolSizeOptions options_;
  std::size_t cpus_;
  std::size_t size_ = 0;
  SizeChange last_change_;
};

}  // namespace weir
