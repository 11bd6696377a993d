// The threads of a pool, and which of them does what.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/runtime/blocking_job.hpp"
#include "weir/runtime/pool_calls.hpp"
#include "weir/runtime/pool_keeper.hpp"
#include "weir/runtime/pool_options.hpp"
#include "weir/runtime/pool/detail/pool_queue.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"
#include "weir/runtime/pool/detail/pool_size.hpp"
#include "weir/runtime/pool_worker.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// A thread has work, or looks for it (then it is active), or rests. While fewer are active than
/// the size allows, work that may be run has been given to one that is about to look. The size has
/// the keeper's attention while it is automatic and keeps work waiting (`watched_`).
/// Threads: any, but the destructor. Lifetime: outlives every job.
class PoolCrew {
 public:
  PoolCrew(Host& host, const BlockingPoolOptions& options);
  PoolCrew(const PoolCrew&) = delete;
  PoolCrew& operator=(const PoolCrew&) = delete;
  /// Closes, and waits until all threads have ended.
  ~PoolCrew();

  std::size_t add_lane(const PoolLaneOptions& options);
  /// On the job's loop. Errors: Errc::closed, Errc::limit_reached. Without one, the job comes home
  /// later: when it has been called, or with the reason why it was not.
  Result<> submit(BlockingJob& job);
  /// On the job's loop, before it has come home: lets it come home at once if it is queued, else
  /// asks it to stop.
  void cancel(BlockingJob& job);
  /// From now on submit() fails; what is queued fails with Errc::cancelled, what runs is asked to
  /// stop.
  void close();
  void resize(const PoolSizeOptions& options);
  PoolReport report() const;

 private:
  friend class PoolKeeper;
  friend class PoolWorker;

  /// What was decided with the mutex, to be done without it: wake a thread that rested, or start a
  /// new one; and have the keeper look.
  struct Call {
    bool needed = false;
    PoolWorker* rested = nullptr;
    bool keeper = false;
  };
  // The mutex is held in these.
  Call next_call(Instant now);
  Call call_keeper();
  BlockingJob* take(PoolWorker& worker, Instant now);
  std::optional<Instant> rest(PoolWorker& worker, Instant now);
  void end(BlockingJob& job, std::error_code refusal);

  // And not in these.
  void follow(Call call);
  std::optional<Duration> call_job(PoolWorker& worker);
  Result<> start_one() noexcept;
  void start_keeper();
  std::optional<Instant> step(PoolWorker& worker);
  void call_all();
  void refuse_queued(std::error_code refusal);
  std::stop_source running_call() const;

  Host& host_;
  const HostThreadOptions threads_;
  PoolKeeper keeper_{*this};
  std::unique_ptr<HostThread> keeper_thread_;
  mutable std::mutex mutex_;  // guards what follows
  PoolQueue queue_;
  PoolSize size_;
  std::vector<std::unique_ptr<PoolWorker>> workers_;
  PoolCalls calls_{mutex_};
  std::size_t active_ = 0;
  std::size_t ended_ = 0;     // of the workers: cleared away by the keeper
  List<PoolWorker> resting_;  // the last one to lie down first
  bool closed_ = false;
  bool keeper_started_ = false;
  bool watched_ = false;  // the keeper looks, or has been called to
  Instant keeper_refused_until_ = Instant::min();
  SizeEvidence evidence_ = SizeEvidence::none;
  std::optional<double> blocked_now_;
};

}  // namespace weir
