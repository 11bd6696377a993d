#include "weir/cores/pool_crew.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <thread>
#include <utility>

namespace weir {
namespace {

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
      threads_{options.name, options.rank},
      keeper_thread_(host.make_thread({.name = options.name}, keeper_)),
      size_(options.size, {.cpus = cpus_of(host.topology()), .threads_max = host.threads_max()},
            host.now()) {
  add_lane(options.lane);
}

PoolCrew::~PoolCrew() {
  close();
  // With nothing queued there are no more calls; the last ones may still be on their way.
  while (calls_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  // Without the mutex, which they need for their last step, and before any of them is freed. The
  // keeper looks at the others.
  keeper_thread_.reset();
  for (const auto& worker : workers_) {
    worker->thread.reset();
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
    auto pushed = queue_.push(job, job.lane_, size_.now(), host_.now());
    if (!pushed) return pushed;
    job.phase_.store(BlockingJob::Phase::queued, std::memory_order_relaxed);
    call = call_for_queued();
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
  std::vector<std::stop_source> running;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    for (const auto& worker : workers_) {
      if (worker->job != nullptr) running.push_back(worker->job->stop_source());
    }
    // In the same breath: a thread whose call has been stopped would take one of them.
    refuse_queued(Errc::cancelled);
  }
  for (std::stop_source& each : running) each.request_stop();
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
  {
    const std::lock_guard lock(mutex_);
    size_.set(options, host_.now());
    // Those that are too many now find that out themselves.
    for (const auto& worker : workers_) {
      worker->rests_until = Instant::min();
      if (worker->thread != nullptr) worker->thread->wake();
    }
  }
  call_all();
}

void PoolCrew::call_all() {
  for (;;) {
    Call call;
    {
      const std::lock_guard lock(mutex_);
      call = call_one();
    }
    if (!call.needed) return;
    follow(call);
  }
}

PoolCrew::Call PoolCrew::call_one() {
  if (active_ >= size_.now() || !queue_.takeable(size_.now())) return {};
  ++active_;
  // relaxed: under the mutex, which whoever looks for zero has taken before.
  calls_.fetch_add(1, std::memory_order_relaxed);
  return {.needed = true, .rested = resting_.pop_front()};
}

/// For what has just been queued.
PoolCrew::Call PoolCrew::call_for_queued() {
  const Call call = call_one();
  if (call.needed || watched_ || !size_.automatic()) return call;
  watched_ = true;
  return call_keeper();
}

PoolCrew::Call PoolCrew::call_keeper() {
  calls_.fetch_add(1, std::memory_order_relaxed);
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
  // release: with the acquire of whoever looks for zero, the threads are not freed before.
  calls_.fetch_sub(1, std::memory_order_release);
}

void PoolCrew::start_keeper() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(keeper_started_, true)) return;
  }
  if (keeper_thread_->start()) return;
  const std::lock_guard lock(mutex_);
  keeper_started_ = watched_ = false;
}

/// Errors: the kernel's when there is no thread at all.
Result<> PoolCrew::start_one() {
  auto made = std::make_unique<PoolWorker>(*this);
  PoolWorker& worker = *made;
  worker.thread = host_.make_thread(threads_, worker);
  worker.watched.thread = worker.thread.get();
  {
    const std::lock_guard lock(mutex_);
    workers_.push_back(std::move(made));
  }
  auto started = worker.thread->start();
  if (started) return {};
  const std::lock_guard lock(mutex_);
  --active_;
  std::erase_if(workers_, [&](const auto& each) { return each.get() == &worker; });
  const std::size_t left = workers_.size() - ended_;
  size_.no_thread_left(left, host_.now());
  if (left != 0) return {};
  return started;
}

std::optional<Instant> PoolCrew::step(PoolWorker& worker) {
  BlockingJob* const done = worker.job;
  if (done != nullptr) {
    worker.watched.in_work.store(true, std::memory_order_relaxed);  // see pool_watch.cpp
    done->call();
    worker.watched.in_work.store(false, std::memory_order_relaxed);
  }
  Call call;
  std::optional<Instant> next;
  {
    // Once for each job: the end of one and the beginning of the next.
    const std::lock_guard lock(mutex_);
    const Instant now = host_.now();
    if (done != nullptr) {
      queue_.finished(*done, now);
      end(*done, {});
    }
    worker.job = take(worker, now);
    if (worker.job != nullptr) {
      call = call_one();
      next = Instant::min();
    } else {
      next = rest(worker, now);
      if (!next && keeper_started_ && !closed_) call = call_keeper();
    }
  }
  if (done != nullptr) done->go_home();
  follow(call);
  return next;
}

BlockingJob* PoolCrew::take(PoolWorker& worker, Instant now) {
  if (worker.linked() || active_ > size_.now()) return nullptr;
  auto* const job = static_cast<BlockingJob*>(queue_.take(size_.now(), now));
  if (job != nullptr) job->phase_.store(BlockingJob::Phase::running, std::memory_order_relaxed);
  return job;
}

/// When to look for work again; nullopt: the thread ends.
std::optional<Instant> PoolCrew::rest(PoolWorker& worker, Instant now) {
  if (!worker.linked()) {
    --active_;
    if (queue_.queued() == 0) size_.rested(active_, now);
    resting_.push_front(worker);
    worker.rests_until = size_.automatic() ? after(now, size_.options().idle_timeout) : now;
  }
  if (workers_.size() - ended_ <= size_.kept()) return never;
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
  report.blocked_share = blocked_share_;
  report.last_change = size_.last_change();
  return report;
}

}  // namespace weir
