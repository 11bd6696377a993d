// The threads of a pool, and which of them does what.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/list.hpp"
#include "weir/cores/blocking_job.hpp"
#include "weir/cores/pool_options.hpp"
#include "weir/cores/pool_queue.hpp"
#include "weir/cores/pool_report.hpp"
#include "weir/cores/pool_size.hpp"
#include "weir/loop/host.hpp"

namespace weir {

/// A thread has work, or looks for it (then it is active), or rests. While fewer are active than
/// the size allows, work that may be run has been given to one that is about to look.
/// Threads: any, but the destructor. Lifetime: outlives every job.
class PoolCrew {
 public:
  PoolCrew(Host& host, const BlockingPoolOptions& options);
  PoolCrew(const PoolCrew&) = delete;
  PoolCrew& operator=(const PoolCrew&) = delete;
  /// Closes, and waits until all threads have ended.
  ~PoolCrew();

  std::size_t add_lane(const PoolLaneOptions& options);
  /// On the job's loop. Errors: Errc::closed, Errc::limit_reached, or the kernel's where there is
  /// not even one thread. Without one, the job comes home when it has been called.
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
  class Worker;

  /// Who is called to look for work: a thread that rested, or, if that is nullptr, a new one.
  struct Call {
    bool needed = false;
    Worker* rested = nullptr;
  };
  // The mutex is held in these.
  Call call_one();
  std::optional<Instant> rest(Worker& worker, Instant now);
  void end(BlockingJob& job, std::error_code refusal);

  // And not in these.
  void follow(Call call);
  Result<> start_one();
  std::optional<Instant> step(Worker& worker);
  void call_all();
  void refuse_queued(std::error_code refusal);

  Host& host_;
  const std::string name_;
  mutable std::mutex mutex_;  // guards what follows
  PoolQueue queue_;
  PoolSize size_;
  std::size_t active_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  List<Worker> resting_;     // the last one to lie down first
  std::size_t threads_ = 0;  // that have not ended
  bool closed_ = false;
  std::atomic<unsigned> calls_{0};  // that were decided upon and not yet made
};

}  // namespace weir
