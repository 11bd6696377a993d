#include "weir/runtime/pool_crew.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <utility>

namespace weir {
namespace {

// It looks at threads and starts them: that takes no deep stack.
constexpr std::size_t keeper_stack_bytes = std::size_t{256} * 1024;
// Where the host had no thread for the keeper, another one is asked for after so long.
constexpr Duration keeper_again = std::chrono::milliseconds(100);
// After so many brief jobs on end, the CPU time of one in so many is looked at.
constexpr unsigned brief_jobs_timed = 16;

/// How many threads can run at once here.
std::size_t cpus_of(const os::Topology& topology) {
  const std::size_t allowed = std::max<std::size_t>(topology.cpus_allowed, 1);
  if (!topology.cpu_quota) return allowed;
  const auto quota = static_cast<std::size_t>(std::ceil(*topology.cpu_quota));
  return std::clamp<std::size_t>(quota, 1, allowed);
}

}  // namespace

std::optional<Instant> PoolWorker::step() noexcept {
  return crew_.step(*this);
}

PoolCrew::PoolCrew(Host& host, const BlockingPoolOptions& options)
    : host_(host),
      threads_{.name = options.name, .rank = options.rank, .stack_bytes = options.stack_bytes},
      keeper_thread_(host.make_thread(
          {.name = options.name, .rank = ThreadRank::equal, .stack_bytes = keeper_stack_bytes},
          keeper_)),
      size_(options.size, {.cpus = cpus_of(host.topology()), .threads_max = host.threads_max()},
            host.now()) {
  keeper_.thread = keeper_thread_.get();
  add_lane(options.lane);
}

PoolCrew::~PoolCrew() {
  close();
  // With nothing queued there are no more calls; the last ones may still be on their way.
  calls_.await_none();
  // Without the mutex, which they need for their last step, and before any of them is freed. The
  // keeper looks at the others.
  keeper_thread_.reset();
  for (const auto& worker : workers_) worker->thread.reset();
  // Now there is nobody left who would need the mutex.
  for (const auto& worker : workers_) {
    if (worker->job == nullptr) continue;
    // It was taken, and its call has not begun.
    queue_.give_up(*worker->job);
    end(*worker->job, Errc::cancelled);
    worker->job->go_home();
  }
  assert(queue_.queued() == 0 && queue_.running() == 0);
}

std::size_t PoolCrew::add_lane(const PoolLaneOptions& options) {
  const std::lock_guard lock(mutex_);
  if (options.share < 1) size_.need(2, host_.now());
  return queue_.add_lane(options);
}

Result<> PoolCrew::submit(BlockingJob& job) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(Errc::closed);
    const Instant now = host_.now();
    auto pushed = queue_.push(job, job.lane_, size_.now(), now);
    if (!pushed) return pushed;
    // relaxed, here and wherever it is not the end: all who act upon it have the mutex.
    job.phase_.store(BlockingJob::Phase::queued, std::memory_order_relaxed);
    call = next_call(now);
  }
  follow(call);
  return {};
}

void PoolCrew::cancel(BlockingJob& job) {
  std::stop_source running(std::nostopstate);
  {
    const std::lock_guard lock(mutex_);
    switch (job.phase_.load(std::memory_order_relaxed)) {
      case BlockingJob::Phase::queued:
        queue_.cancel(job);
        end(job, Errc::cancelled);
        job.go_on();
        return;
      case BlockingJob::Phase::running:
        running = job.stop_source();
        break;
      case BlockingJob::Phase::idle:
      case BlockingJob::Phase::finished:
        break;
    }
  }
  // What is called back may be anything, also something of this pool's.
  running.request_stop();
}

void PoolCrew::close() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    // In the same breath: a thread whose call has been stopped would take one of them.
    refuse_queued(Errc::cancelled);
  }
  // One at a time: what is called back may be anything, also something of this pool's; and without
  // memory, for this must not fail.
  for (std::stop_source next = running_call(); next.stop_possible(); next = running_call()) {
    next.request_stop();
  }
}

/// Of a call that runs and has not been asked to stop, if any; else without a state.
std::stop_source PoolCrew::running_call() const {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) {
    if (worker->job == nullptr) continue;
    std::stop_source source = worker->job->stop_source();
    if (source.stop_possible() && !source.stop_requested()) return source;
  }
  return std::stop_source(std::nostopstate);
}

/// Under the mutex.
void PoolCrew::refuse_queued(std::error_code refusal) {
  while (PoolJob* const queued = queue_.cancel_any()) {
    auto& job = static_cast<BlockingJob&>(*queued);
    end(job, refusal);
    job.go_home();
  }
}

void PoolCrew::end(BlockingJob& job, std::error_code refusal) {
  job.refusal_ = refusal;
  // release pairs with the acquire of BlockingJob::ask().
  job.phase_.store(BlockingJob::Phase::finished, std::memory_order_release);
}

void PoolCrew::resize(const PoolSizeOptions& options) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    size_.set(options, host_.now());
    // Those that are too many now find that out themselves.
    for (const auto& worker : workers_) {
      worker->rests_until = Instant::min();
      if (worker->thread != nullptr) worker->thread->wake();
    }
    if (queue_.queued() != 0) {
      // To start what threads are missing now may take long: not here, which may be a loop.
      watched_ = true;
      call = call_keeper();
    }
  }
  follow(call);
}

void PoolCrew::call_all() {
  for (;;) {
    Call call;
    {
      const std::lock_guard lock(mutex_);
      call = next_call(host_.now());
    }
    if (!call.needed && !call.keeper) return;
    follow(call);
  }
}

/// For one thread more, if there may be one and it would find work; else for the keeper, if work
/// waits for nothing but the size and the keeper does not know.
PoolCrew::Call PoolCrew::next_call(Instant now) {
  size_.try_again(now);
  const std::size_t size = size_.now();
  if (active_ < size + queue_.beside() && queue_.takeable(size)) {
    ++active_;
    calls_.begin();
    return {.needed = true, .rested = resting_.pop_front()};
  }
  if (watched_ || !size_.automatic() || !queue_.held_back() || now < keeper_refused_until_) {
    return {};
  }
  watched_ = true;
  return call_keeper();
}

PoolCrew::Call PoolCrew::call_keeper() {
  calls_.begin();
  return {.keeper = true};
}

void PoolCrew::follow(Call call) {
  if (!call.needed && !call.keeper) return;
  if (call.keeper) {
    start_keeper();
    keeper_thread_->wake();
  } else if (call.rested != nullptr) {
    call.rested->thread->wake();
  } else if (auto started = start_one(); !started) {
    const std::lock_guard lock(mutex_);
    refuse_queued(started.error());
  }
  calls_.end();
}

void PoolCrew::start_keeper() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(keeper_started_, true)) return;
  }
  if (keeper_thread_->start()) return;
  {
    const std::lock_guard lock(mutex_);
    keeper_started_ = watched_ = false;
    keeper_refused_until_ = after(host_.now(), keeper_again);
  }
  call_all();  // as far as it goes without one
}

/// Errors: the kernel's when there is no thread at all; ENOMEM, also for whatever the host throws:
/// work is queued, and nobody above could give it back.
Result<> PoolCrew::start_one() noexcept {
  PoolWorker* worker = nullptr;
  Result<> started;
  try {
    auto made = std::make_unique<PoolWorker>(*this);
    made->thread = host_.make_thread(threads_, *made);
    made->watched.thread = made->thread.get();
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
  size_.no_thread_left(left, host_.now());
  if (left != 0) return {};
  return started;
}

std::optional<Instant> PoolCrew::step(PoolWorker& worker) {
  BlockingJob* const done = worker.job;
  std::optional<Duration> used;
  if (done != nullptr) used = call_job(worker);
  Call call;
  std::optional<Instant> next;
  {
    // Once for each job: the end of one and the beginning of the next.
    const std::lock_guard lock(mutex_);
    const Instant now = host_.now();
    if (done != nullptr) {
      const bool brief = now - worker.took_at < PoolQueue::brief;
      worker.brief_jobs = brief ? worker.brief_jobs + 1 : 0;
      queue_.finished(*done, now, used);
      end(*done, {});
    }
    worker.job = take(worker, now);
    worker.straight = done != nullptr;
    worker.took_at = now;
    if (worker.job != nullptr) {
      call = next_call(now);
      next = Instant::min();
    } else {
      next = rest(worker, now);
      // It clears away what is left of this thread.
      if (!next && !closed_) call = call_keeper();
    }
  }
  if (done != nullptr) done->go_home();
  follow(call);
  return next;
}

/// Returns the CPU time that it has used, if that was looked at.
std::optional<Duration> PoolCrew::call_job(PoolWorker& worker) {
  // Not by `worker.thread`, which is empty while its destructor waits for this step.
  HostThread& self = *worker.watched.thread;
  // Reading the clock is a system call: once for each job while one follows the other, and seldom
  // while they take no longer than that.
  const bool timed =
      worker.brief_jobs < brief_jobs_timed || worker.brief_jobs % brief_jobs_timed == 0;
  std::optional<Duration> before;
  if (timed) before = worker.straight && worker.cpu_time ? worker.cpu_time : self.cpu_time();
  // relaxed: see pool_watch.cpp.
  worker.watched.in_work.store(true, std::memory_order_relaxed);
  {
    const Running::Working working(worker.job->unit_);
    worker.job->call();
  }
  worker.watched.in_work.store(false, std::memory_order_relaxed);
  worker.cpu_time.reset();
  if (!before) return std::nullopt;
  worker.cpu_time = self.cpu_time();
  return *worker.cpu_time - *before;
}

BlockingJob* PoolCrew::take(PoolWorker& worker, Instant now) {
  if (worker.linked() || active_ > size_.now() + queue_.beside()) return nullptr;
  auto* const job = static_cast<BlockingJob*>(queue_.take(size_.now(), now));
  if (job != nullptr) job->phase_.store(BlockingJob::Phase::running, std::memory_order_relaxed);
  return job;
}

/// When to look for work again; nullopt: the thread ends.
std::optional<Instant> PoolCrew::rest(PoolWorker& worker, Instant now) {
  if (!worker.linked()) {
    --active_;
    if (!queue_.held_back()) size_.rested(active_, now);
    resting_.push_front(worker);
    worker.rests_until = size_.automatic() ? after(now, size_.options().idle_timeout) : now;
  }
  const std::size_t kept = size_.kept() + (size_.automatic() ? 0 : queue_.beside_max());
  if (workers_.size() - ended_ <= kept) return never;
  if (now < worker.rests_until) return worker.rests_until;
  worker.unlink();
  worker.ended = true;
  ++ended_;
  return std::nullopt;
}

PoolReport PoolCrew::report() const {
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

}  // namespace weir
