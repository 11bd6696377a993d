// The worker threads of a pool: starts, wakes and ends them, and gives them jobs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/runtime/pool/detail/blocking_call.hpp"
#include "weir/runtime/pool/detail/pool_control.hpp"
#include "weir/runtime/pool/detail/pool_queue.hpp"
#include "weir/runtime/pool/detail/pool_size.hpp"
#include "weir/runtime/pool/pool_options.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

// Workers.

class BlockingJob;
class PoolThreads;

/// A PoolWorker is the state of one thread of a pool. The pool's mutex guards it, except for
/// members that are marked otherwise.
/// Threads: step(): its own thread.
class PoolWorker final : public loop::ThreadWork, public detail::ListNode {
 public:
  explicit PoolWorker(PoolThreads& threads) noexcept : threads_(threads) {}
  std::optional<Instant> step() noexcept override;

  BlockingJob* job = nullptr;                    // taken job; the next step calls it
  Instant idle_until = never;                    // set while the worker is linked
  bool ended = false;                            // true if its thread is ending or has ended
  bool consecutive = false;                      // own thread only: true from one job to the next
  Instant taken_at{};                            // own thread only: start of that job
  unsigned brief_jobs = 0;                       // own thread only: consecutive brief jobs
  std::optional<Duration> cpu_time;              // own thread only: after the last job, if read
  SampledThread sampled;                         // used by the controller
  std::unique_ptr<loop::PlatformThread> thread;  // constant; last member, so it ends first

 private:
  PoolThreads& threads_;
};

// A count of calls that wake or start a thread, so that no such thread is freed meanwhile.

/// InFlightCalls counts calls that are decided under a mutex and made without it.
/// Threads: any.
class InFlightCalls {
 public:
  /// Stores the mutex, which outlives this object.
  explicit InFlightCalls(std::mutex& mutex) noexcept : mutex_(mutex) {}

  /// Begins a call; the caller holds the mutex.
  void begin() noexcept {
    // relaxed: the mutex orders it before the caller of none() or wait_until_none().
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Ends a call; it is the call's last action, because its object may be destroyed afterwards.
  /// The caller does not hold the mutex.
  void end() noexcept;
  /// Returns true if no call is in flight; the caller holds the mutex, so none begins.
  bool none() const noexcept {
    // acquire pairs with the release in end(): all effects of the calls are complete.
    return (count_.load(std::memory_order_acquire) & ~waiter_bit) == 0;
  }
  /// Blocks until all calls have ended; none may begin any more. Called at most once, without the
  /// mutex. It sleeps, because a real-time thread that only yielded would keep the CPU from the
  /// thread that it waits for.
  void wait_until_none() noexcept;

 private:
  static constexpr unsigned waiter_bit = 1U << 31;  // set by wait_until_none()
  std::mutex& mutex_;
  std::atomic<unsigned> count_{0};
};

/// PoolThreads owns the threads of a pool. A thread is active if it has work or looks for work;
/// otherwise it is idle. Each runnable job is matched by a thread that is about to look for work,
/// while fewer threads are active than the size allows. The controller samples an automatic size
/// while it keeps work waiting (`sampling_requested_`). A submission starts no thread, because that
/// would delay its loop: the controller starts the threads (`starts_requested_`).
/// Threads: any, except for the destructor.
/// Lifetime: outlives every job.
class PoolThreads {
 public:
  PoolThreads(loop::Platform& platform, const BlockingPoolOptions& options);
  PoolThreads(const PoolThreads&) = delete;
  PoolThreads& operator=(const PoolThreads&) = delete;
  /// Closes the pool and waits until all threads have ended.
  ~PoolThreads();

  std::size_t add_lane(const PoolLaneOptions& options);
  /// Queues a job; called on the job's loop. The job returns to its loop after success: either
  /// when it was called, or with the reason why it was not.
  /// Errors: Errc::closed, Errc::limit_reached.
  Result<> submit(BlockingJob& job);
  /// Cancels a job; called on the job's loop before the job has returned to it. A queued job
  /// returns to its loop immediately; a running job gets a stop request.
  void cancel(BlockingJob& job);
  /// Makes submit() fail from now on. Queued jobs fail with Errc::cancelled, and running jobs get
  /// a stop request.
  void close();
  void resize(const PoolSizeOptions& options);
  PoolReport report() const;

 private:
  friend class PoolController;
  friend class PoolWorker;

  /// Action is decided under the mutex and performed without it: wake `idle_worker` or start a
  /// new thread, and wake the controller.
  struct Action {
    bool needed = false;
    PoolWorker* idle_worker = nullptr;
    bool controller = false;
  };
  /// The thread that starts a worker. A loop leaves it to the controller.
  enum class Starter : std::uint8_t { caller, controller };

  // The caller holds the mutex.
  Action next_action(Instant now, Starter starter);
  bool has_controller(Instant now) const noexcept;
  Action wake_controller();
  std::size_t active_max() const noexcept;
  BlockingJob* take(PoolWorker& worker, Instant now);
  std::optional<Instant> make_idle(PoolWorker& worker, Instant now);
  void finish(BlockingJob& job, std::error_code rejection);

  // The caller does not hold the mutex.
  void perform(Action action);
  std::optional<Duration> run_job(PoolWorker& worker);
  Result<> start_thread() noexcept;
  void start_controller();
  std::optional<Instant> step(PoolWorker& worker);
  void start_needed_threads();
  void start_requested_threads();
  bool sampling_requested() const;
  void reject_queued(std::error_code rejection);
  std::stop_source next_stop_source() const;

  loop::Platform& platform_;
  const loop::PlatformThreadOptions thread_options_;
  PoolController controller_{*this};
  std::unique_ptr<loop::PlatformThread> controller_thread_;
  mutable std::mutex mutex_;  // guards the members below
  PoolQueue queue_;
  PoolSize size_;
  std::vector<std::unique_ptr<PoolWorker>> workers_;
  InFlightCalls calls_{mutex_};
  std::size_t active_ = 0;
  std::size_t ended_ = 0;          // ended workers that the controller has not freed
  detail::List<PoolWorker> idle_;  // most recently idle first
  bool closed_ = false;
  bool controller_started_ = false;
  std::size_t starts_requested_ = 0;  // threads that the controller was woken to start
  bool sampling_requested_ = false;   // the controller samples or was woken to sample
  Instant controller_retry_at_ = Instant::min();
  SizeEvidence evidence_ = SizeEvidence::none;
  std::optional<double> blocked_now_;
};

}  // namespace weir
