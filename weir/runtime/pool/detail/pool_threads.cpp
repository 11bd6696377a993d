#include "weir/runtime/pool/detail/pool_threads.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <memory>
#include <utility>

#include "weir/loop/contract/detail/work_observer.hpp"
#include "weir/runtime/pool/detail/pool_list.hpp"

namespace weir {
namespace {

// The controller samples and starts threads, which needs no deep stack.
constexpr std::size_t controller_stack_bytes = std::size_t{256} * 1024;
// Delay before the platform is asked again for a thread of the controller.
constexpr Duration controller_retry = std::chrono::milliseconds(100);
// After this number of consecutive brief jobs, CPU time is measured once in the same number of
// jobs.
constexpr unsigned brief_jobs_timed = 16;

/// Returns the number of threads that can run at the same time.
std::size_t cpus_of(const os::Topology& topology) {
  const std::size_t allowed = std::max<std::size_t>(topology.cpus_allowed, 1);
  if (!topology.cpu_quota) return allowed;
  const auto quota = static_cast<std::size_t>(std::ceil(*topology.cpu_quota));
  return std::clamp<std::size_t>(quota, 1, allowed);
}

}  // namespace

std::optional<Instant> PoolWorker::step() noexcept {
  return threads_.step(*this);
}

PoolThreads::PoolThreads(loop::Platform& platform, const BlockingPoolOptions& options)
    : platform_(platform),
      thread_options_{
          .name = options.name, .priority = options.priority, .stack_bytes = options.stack_bytes},
      controller_thread_(platform.make_thread({.name = options.name,
                                               .priority = ThreadPriority::normal,
                                               .stack_bytes = controller_stack_bytes},
                                              controller_)),
      size_(options.size,
            {.cpus = cpus_of(platform.topology()), .threads_max = platform.threads_max()},
            platform.now()) {
  controller_.thread = controller_thread_.get();
  add_lane(options.lane);
  add_to_pools(*this, platform, options.name);
  start_controller();
}

PoolThreads::~PoolThreads() {
  remove_from_pools(*this);
  close();
  // Nothing is queued, so no calls begin; the last ones may still be in flight.
  calls_.wait_until_none();
  // Join without the mutex, which the threads need for their last step, and before any worker is
  // freed. The controller comes first because it uses the others.
  controller_thread_.reset();
  for (const auto& worker : workers_) worker->thread.reset();
  // No thread is left that could need the mutex.
  for (const auto& worker : workers_) {
    if (worker->job == nullptr) continue;
    // The job was taken, and its call has not begun.
    queue_.discard(*worker->job);
    finish(*worker->job, Errc::cancelled);
    worker->job->resume_on_owner();
  }
  assert(queue_.queued() == 0 && queue_.running() == 0);
}

std::size_t PoolThreads::add_lane(const PoolLaneOptions& options) {
  const std::lock_guard lock(mutex_);
  if (options.share_max < 1) size_.require(2, platform_.now());
  return queue_.add_lane(options);
}

Result<> PoolThreads::submit(BlockingJob& job) {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(Errc::closed);
    const Instant now = platform_.now();
    auto pushed = queue_.push(job, job.lane_, size_.now(), now);
    if (!pushed) return pushed;
    // relaxed, here and for every phase except `finished`: all readers that act on it hold the
    // mutex.
    job.phase_.store(BlockingJob::Phase::queued, std::memory_order_relaxed);
    action = next_action(now, Starter::controller);
  }
  perform(action);
  return {};
}

void PoolThreads::cancel(BlockingJob& job) {
  std::stop_source running(std::nostopstate);
  {
    const std::lock_guard lock(mutex_);
    switch (job.phase_.load(std::memory_order_relaxed)) {
      case BlockingJob::Phase::queued:
        queue_.cancel(job);
        finish(job, Errc::cancelled);
        job.make_ready();
        return;
      case BlockingJob::Phase::running:
        running = job.stop_source();
        break;
      case BlockingJob::Phase::idle:
      case BlockingJob::Phase::finished:
        break;
    }
  }
  // Stop callbacks may run any code, including calls of this pool.
  running.request_stop();
}

void PoolThreads::close() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    // The lock is still held, so that no thread whose call was stopped takes queued work first.
    reject_queued(Errc::cancelled);
  }
  // One at a time, because callbacks may run any code, including calls of this pool. No memory is
  // allocated, because this must not fail.
  for (std::stop_source next = next_stop_source(); next.stop_possible();
       next = next_stop_source()) {
    next.request_stop();
  }
}

/// Returns the source of a running call that has not been asked to stop; one without state if
/// there is none.
std::stop_source PoolThreads::next_stop_source() const {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) {
    if (worker->job == nullptr) continue;
    std::stop_source source = worker->job->stop_source();
    if (source.stop_possible() && !source.stop_requested()) return source;
  }
  return std::stop_source(std::nostopstate);
}

/// Rejects all queued jobs; the caller holds the mutex.
void PoolThreads::reject_queued(std::error_code rejection) {
  while (PoolJob* const queued = queue_.cancel_any()) {
    auto& job = static_cast<BlockingJob&>(*queued);
    finish(job, rejection);
    job.resume_on_owner();
  }
}

void PoolThreads::finish(BlockingJob& job, std::error_code rejection) {
  job.rejection_ = rejection;
  // release pairs with the acquire of BlockingJob::on_cancel().
  job.phase_.store(BlockingJob::Phase::finished, std::memory_order_release);
}

void PoolThreads::resize(const PoolSizeOptions& options) {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    size_.set(options, platform_.now());
    // Excess threads end after their next look for work.
    for (const auto& worker : workers_) {
      worker->idle_until = Instant::min();
      if (worker->thread != nullptr) worker->thread->wake();
    }
    if (queue_.queued() != 0) {
      // Starting the missing threads may take long, and this thread may be a loop.
      sampling_requested_ = true;
      action = wake_controller();
    }
  }
  perform(action);
}

bool PoolThreads::sampling_requested() const {
  const std::lock_guard lock(mutex_);
  return sampling_requested_;
}

/// Starts the threads that submissions have requested, if their work still needs them.
void PoolThreads::start_requested_threads() {
  std::size_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    left = std::exchange(starts_requested_, 0);
  }
  for (; left > 0; --left) {
    Action action;
    {
      const std::lock_guard lock(mutex_);
      action = next_action(platform_.now(), Starter::caller);
    }
    perform(action);
  }
}

void PoolThreads::start_needed_threads() {
  for (;;) {
    Action action;
    {
      const std::lock_guard lock(mutex_);
      action = next_action(platform_.now(), Starter::caller);
    }
    if (!action.needed && !action.controller) return;
    perform(action);
  }
}

/// Decides to wake or start one more thread if the size allows it and the thread would find work.
/// Otherwise decides to wake the controller, if only the size keeps work waiting and the
/// controller is not sampling.
PoolThreads::Action PoolThreads::next_action(Instant now, Starter starter) {
  size_.retry(now);
  const std::size_t size = size_.now();
  if (active_ < active_max() && queue_.has_runnable(size)) {
    if (starter == Starter::controller && idle_.empty() && has_controller(now)) {
      return starts_requested_++ == 0 ? wake_controller() : Action();
    }
    ++active_;
    calls_.begin();
    return {.needed = true, .idle_worker = idle_.pop_front()};
  }
  if (sampling_requested_ || !size_.automatic() || !queue_.has_backlog() ||
      now < controller_retry_at_) {
    return {};
  }
  sampling_requested_ = true;
  return wake_controller();
}

/// Returns false if the controller could not be started and must not be started again yet.
bool PoolThreads::has_controller(Instant now) const noexcept {
  return controller_started_ || now >= controller_retry_at_;
}

/// Returns the number of threads that may be active. After the size fell, the excess threads with
/// work take no reserved thread.
std::size_t PoolThreads::active_max() const noexcept {
  return std::max(size_.now(), queue_.running_shared()) + queue_.reserved_threads();
}

PoolThreads::Action PoolThreads::wake_controller() {
  calls_.begin();
  return {.controller = true};
}

void PoolThreads::perform(Action action) {
  if (!action.needed && !action.controller) return;
  if (action.controller) {
    start_controller();
    controller_thread_->wake();
  } else if (action.idle_worker != nullptr) {
    action.idle_worker->thread->wake();
  } else if (auto started = start_thread(); !started) {
    const std::lock_guard lock(mutex_);
    reject_queued(started.error());
  }
  calls_.end();
}

void PoolThreads::start_controller() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(controller_started_, true)) return;
  }
  if (controller_thread_->start()) return;
  bool sampling = false;
  {
    const std::lock_guard lock(mutex_);
    controller_started_ = false;
    sampling = std::exchange(sampling_requested_, false);
    controller_retry_at_ = after(platform_.now(), controller_retry);
  }
  // The controller could not be started, so this thread starts the workers.
  start_requested_threads();
  if (sampling) start_needed_threads();
}

/// Starts a worker. It fails with the kernel's error if the pool has no thread at all. ENOMEM
/// also stands for an exception of the platform, because no caller could return the queued work.
Result<> PoolThreads::start_thread() noexcept {
  PoolWorker* worker = nullptr;
  Result<> started;
  try {
    auto made = std::make_unique<PoolWorker>(*this);
    made->thread = platform_.make_thread(thread_options_, *made);
    made->sampled.thread = made->thread.get();
    {
      const std::lock_guard lock(mutex_);
      workers_.push_back(std::move(made));
      worker = workers_.back().get();
    }
    started = worker->thread->start();
  } catch (...) {
    started = fail(system_error(ENOMEM));
  }
  if (started) return {};
  const std::lock_guard lock(mutex_);
  --active_;
  std::erase_if(workers_, [&](const auto& each) { return each.get() == worker; });
  const std::size_t left = workers_.size() - ended_;
  size_.on_thread_limit(left, platform_.now());
  if (left != 0) return {};
  return started;
}

std::optional<Instant> PoolThreads::step(PoolWorker& worker) {
  BlockingJob* const done = worker.job;
  std::optional<Duration> used;
  if (done != nullptr) used = run_job(worker);
  Action action;
  std::optional<Instant> next;
  {
    // Lock once for each job: for the end of one and the beginning of the next.
    const std::lock_guard lock(mutex_);
    const Instant now = platform_.now();
    if (done != nullptr) {
      const bool brief = now - worker.taken_at < PoolQueue::brief;
      worker.brief_jobs = brief ? worker.brief_jobs + 1 : 0;
      queue_.finished(*done, now, used);
      finish(*done, {});
    }
    worker.job = take(worker, now);
    worker.consecutive = done != nullptr;
    worker.taken_at = now;
    if (worker.job != nullptr) {
      action = next_action(now, Starter::caller);
      next = Instant::min();
    } else {
      next = make_idle(worker, now);
      // The controller frees this worker.
      if (!next && !closed_) action = wake_controller();
    }
  }
  if (done != nullptr) done->resume_on_owner();
  perform(action);
  return next;
}

/// Returns the CPU time of the job, if it was measured.
std::optional<Duration> PoolThreads::run_job(PoolWorker& worker) {
  // Do not use `worker.thread`, which is empty while its destructor waits for this step.
  loop::PlatformThread& self = *worker.sampled.thread;
  // Reading the clock is a system call. One reading for each job is enough while jobs follow each
  // other; readings are rare while jobs are as short as a reading.
  const bool timed =
      worker.brief_jobs < brief_jobs_timed || worker.brief_jobs % brief_jobs_timed == 0;
  std::optional<Duration> before;
  if (timed) before = worker.consecutive && worker.cpu_time ? worker.cpu_time : self.cpu_time();
  // relaxed: see pool_control.cpp.
  worker.sampled.in_work.store(true, std::memory_order_relaxed);
  {
    const TraceContext* trace = worker.job->trace_;
    std::unique_ptr<WorkObserver::Running> observed;
    if (is_observed(trace)) {
      observed =
          observer_of(trace->span())
              ->begin_work(trace, trace->span(),
                           {.name = "pool", .detail = {}, .queued_at = worker.job->queued_at()});
      if (observed != nullptr) trace = &observed->trace();
    }
    const loop::CurrentActivity::TraceGuard trace_guard(trace);
    worker.job->call();
  }
  worker.sampled.in_work.store(false, std::memory_order_relaxed);
  worker.cpu_time.reset();
  if (!before) return std::nullopt;
  worker.cpu_time = self.cpu_time();
  return *worker.cpu_time - *before;
}

BlockingJob* PoolThreads::take(PoolWorker& worker, Instant now) {
  if (worker.linked() || active_ > active_max()) return nullptr;
  auto* const job = static_cast<BlockingJob*>(queue_.take(size_.now(), now));
  if (job != nullptr) job->phase_.store(BlockingJob::Phase::running, std::memory_order_relaxed);
  return job;
}

/// Returns when to look for work again; nullopt if the thread ends.
std::optional<Instant> PoolThreads::make_idle(PoolWorker& worker, Instant now) {
  if (!worker.linked()) {
    --active_;
    if (!queue_.has_backlog()) size_.on_idle(active_, now);
    idle_.push_front(worker);
    worker.idle_until = size_.automatic() ? after(now, size_.options().idle_timeout) : now;
  }
  const std::size_t kept = size_.kept() + (size_.automatic() ? 0 : queue_.reserved_threads_max());
  if (workers_.size() - ended_ <= kept) return never;
  if (now < worker.idle_until) return worker.idle_until;
  worker.unlink();
  worker.ended = true;
  ++ended_;
  return std::nullopt;
}

PoolReport PoolThreads::report() const {
  PoolReport report;
  const std::lock_guard lock(mutex_);
  queue_.report(report);
  report.size = size_.now();
  report.threads = workers_.size() - ended_;
  report.evidence = evidence_;
  report.blocked_now = blocked_now_;
  report.last_change = size_.last_change();
  return report;
}

void InFlightCalls::end() noexcept {
  // relaxed: this is only a guess, which the exchange checks.
  unsigned before = count_.load(std::memory_order_relaxed);
  while ((before & waiter_bit) == 0) {
    // release pairs with the acquire of a caller that sees no calls left: nothing is freed
    // before. The exchange checks `waiter_bit` in the same step: a later waiter sees the
    // remaining count.
    if (count_.compare_exchange_weak(before, before - 1, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  // The waiter takes the mutex before it returns, so this object lives until the mutex is
  // released.
  const std::lock_guard lock(mutex_);
  count_.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in none()
  count_.notify_all();
}

void InFlightCalls::wait_until_none() noexcept {
  // acquire, here and below: see none().
  unsigned now = count_.fetch_or(waiter_bit, std::memory_order_acquire) | waiter_bit;
  while (now != waiter_bit) {
    count_.wait(now, std::memory_order_acquire);
    now = count_.load(std::memory_order_acquire);
  }
  const std::lock_guard lock(mutex_);  // the last call has left end()
}

}  // namespace weir
