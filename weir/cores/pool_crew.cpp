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

/// A thread. All but `thread` is guarded by the crew's mutex.
class PoolCrew::Worker final : public ThreadWork, public ListNode {
 public:
  explicit Worker(PoolCrew& crew) : crew_(crew) {}

  std::optional<Instant> step() noexcept override { return crew_.step(*this); }

  BlockingJob* job = nullptr;
  Instant rests_until = never;         // while it is linked
  std::unique_ptr<HostThread> thread;  // the last member, for it ends first

 private:
  PoolCrew& crew_;
};

PoolCrew::PoolCrew(Host& host, const BlockingPoolOptions& options)
    : host_(host), name_(options.name), size_(options.size, cpus_of(host.topology()), host.now()) {
  queue_.add_lane(options.lane);
}

PoolCrew::~PoolCrew() {
  close();
  // With nothing queued there are no more calls; the last ones may still be on their way.
  while (calls_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  // Without the mutex, which they need for their last step, and before any is freed.
  for (const auto& worker : workers_) worker->thread.reset();
  assert(queue_.queued() == 0 && queue_.running() == 0);
}

std::size_t PoolCrew::add_lane(const PoolLaneOptions& options) {
  const std::lock_guard lock(mutex_);
  return queue_.add_lane(options);
}

Result<> PoolCrew::submit(BlockingJob& job) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(Errc::closed);
    if (auto pushed = queue_.push(job, job.lane_, host_.now()); !pushed) return pushed;
    job.phase_.store(BlockingJob::Phase::queued, std::memory_order_relaxed);
    call = call_one();
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
  }
  for (std::stop_source& each : running) each.request_stop();
  refuse_queued(Errc::cancelled);
}

void PoolCrew::refuse_queued(std::error_code refusal) {
  const std::lock_guard lock(mutex_);
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

void PoolCrew::follow(Call call) {
  if (!call.needed) return;
  if (call.rested != nullptr) {
    call.rested->thread->wake();
  } else if (auto started = start_one(); !started) {
    refuse_queued(started.error());
  }
  // release: with the acquire in the destructor, the threads are not freed before.
  calls_.fetch_sub(1, std::memory_order_release);
}

/// Errors: the kernel's when there is no thread at all.
Result<> PoolCrew::start_one() {
  auto made = std::make_unique<Worker>(*this);
  Worker& worker = *made;
  worker.thread = host_.make_thread(name_, worker);
  {
    const std::lock_guard lock(mutex_);
    workers_.push_back(std::move(made));
    ++threads_;
  }
  auto started = worker.thread->start();
  if (started) return {};
  const std::lock_guard lock(mutex_);
  --active_;
  std::erase_if(workers_, [&](const auto& each) { return each.get() == &worker; });
  size_.no_thread_left(--threads_, host_.now());
  if (threads_ != 0) return {};
  return started;
}

std::optional<Instant> PoolCrew::step(Worker& worker) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    const Instant now = host_.now();
    if (worker.linked()) return rest(worker, now);
    PoolJob* const taken = active_ > size_.now() ? nullptr : queue_.take(size_.now(), now);
    if (taken == nullptr) {
      --active_;
      if (queue_.queued() == 0) size_.rested(active_, now);
      resting_.push_front(worker);
      worker.rests_until = size_.automatic() ? after(now, size_.options().idle_timeout) : now;
      return rest(worker, now);
    }
    worker.job = static_cast<BlockingJob*>(taken);
    worker.job->phase_.store(BlockingJob::Phase::running, std::memory_order_relaxed);
    call = call_one();
  }
  follow(call);
  worker.job->call();
  BlockingJob& job = *worker.job;
  {
    const std::lock_guard lock(mutex_);
    queue_.finished(job, host_.now());
    worker.job = nullptr;
    end(job, {});
  }
  job.go_home();
  return Instant::min();
}

/// When to look again, of one that rests; nullopt: it ends.
std::optional<Instant> PoolCrew::rest(Worker& worker, Instant now) {
  if (threads_ <= size_.kept()) return never;
  if (now < worker.rests_until) return worker.rests_until;
  worker.unlink();
  --threads_;
  return std::nullopt;
}

PoolReport PoolCrew::report() const {
  PoolReport report;
  const std::lock_guard lock(mutex_);
  queue_.report(report);
  report.size = size_.now();
  report.threads = threads_;
  report.last_change = size_.last_change();
  return report;
}

}  // namespace weir
