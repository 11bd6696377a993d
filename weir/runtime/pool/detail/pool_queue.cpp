#include "weir/runtime/pool/detail/pool_queue.hpp"

#include <cassert>

namespace weir {

std::size_t PoolQueue::add_lane(const PoolLaneOptions& options) {
  Lane& lane = lanes_.emplace_back(options);
  double& share = lane.options.share_max;
  if (!(share > 0)) share = 0;  // true for NaN
  share = std::min(share, 1.0);
  reserved_threads_max_ += lane.options.reserved_threads;
  return lanes_.size() - 1;
}

Result<> PoolQueue::push(PoolJob& job, std::size_t lane_index, std::size_t size, Instant now) {
  Lane& lane = lanes_[lane_index];
  const std::size_t room = size - std::min(size, running_shared_) + lane.free_reserved();
  const std::size_t leaving = std::min(lane.free(size), room);
  if (lane.report.queued >= leaving && lane.report.queued - leaving >= lane.options.capacity) {
    if (lane.options.overflow_policy == OverflowPolicy::reject) {
      ++lane.report.rejected;
      return fail(Errc::limit_reached);
    }
    // Its coroutine is suspended in either case, and keeps its position in the queue.
    ++lane.report.waited_for_room;
  }
  job.lane_ = lane_index;
  job.sequence_ = next_sequence_++;
  job.queued_at_ = now;
  lane.jobs.push_back(job);
  ++lane.report.queued;
  ++queued_;
  return {};
}

std::size_t PoolQueue::Lane::free(std::size_t size) const noexcept {
  std::size_t most = options.concurrency_max;
  if (options.share_max < 1.0) {
    const auto part = static_cast<std::size_t>(static_cast<double>(size) * options.share_max);
    most = std::min(most, std::max<std::size_t>(part + options.reserved_threads, 1));
  }
  return most - std::min(most, report.running);
}

const PoolQueue::Lane* PoolQueue::next_lane(std::size_t size) const noexcept {
  const Lane* next = nullptr;
  if (queued_ == 0) return next;
  for (const Lane& lane : lanes_) {
    if (lane.jobs.empty() || lane.free(size) == 0) continue;
    if (running_shared_ >= size && lane.free_reserved() == 0) continue;
    if (next == nullptr || lane.options.priority > next->options.priority ||
        (lane.options.priority == next->options.priority &&
         lane.jobs.front()->sequence_ < next->jobs.front()->sequence_)) {
      next = &lane;
    }
  }
  return next;
}

bool PoolQueue::has_backlog() const noexcept {
  if (queued_ == 0) return false;
  return std::ranges::any_of(lanes_, [](const Lane& lane) {
    return !lane.jobs.empty() && lane.report.running < lane.options.concurrency_max;
  });
}

std::size_t PoolQueue::reserved_threads() const noexcept {
  if (reserved_threads_max_ == 0) return 0;
  std::size_t sum = 0;
  for (const Lane& lane : lanes_) {
    sum += std::min(lane.options.reserved_threads, lane.report.running + lane.report.queued);
  }
  return sum;
}

PoolJob* PoolQueue::take(std::size_t size, Instant now) {
  const Lane* const next = next_lane(size);
  if (next == nullptr) return nullptr;
  PoolJob* const job = next->jobs.front();
  Lane& lane = lanes_[job->lane_];
  job->unlink();
  job->began_at_ = now;
  lane.report.queue_wait.add(now - job->queued_at_);
  --lane.report.queued;
  --queued_;
  if (lane.free_reserved() == 0) ++running_shared_;
  ++lane.report.running;
  ++running_;
  return job;
}

/// Releases the thread of one running job of `lane`.
void PoolQueue::release_thread(Lane& lane) noexcept {
  --lane.report.running;
  --running_;
  if (lane.free_reserved() == 0) --running_shared_;
}

void PoolQueue::finished(PoolJob& job, Instant now, std::optional<Duration> cpu_time) {
  assert(!job.linked());
  Lane& lane = lanes_[job.lane_];
  const Duration run_time = now - job.began_at_;
  lane.report.run_time.add(run_time);
  if (!cpu_time && run_time >= brief) {
    lane.report.unmeasured_time += run_time;
  } else {
    lane.report.cpu_time += std::min(cpu_time.value_or(run_time), run_time);
  }
  ++lane.report.finished;
  release_thread(lane);
  ++finished_;
}

void PoolQueue::discard(PoolJob& job) {
  Lane& lane = lanes_[job.lane_];
  ++lane.report.cancelled;
  release_thread(lane);
}

void PoolQueue::cancel(PoolJob& job) {
  assert(job.linked());
  Lane& lane = lanes_[job.lane_];
  job.unlink();
  ++lane.report.cancelled;
  --lane.report.queued;
  --queued_;
}

PoolJob* PoolQueue::cancel_any() {
  for (Lane& lane : lanes_) {
    if (PoolJob* const job = lane.jobs.front()) {
      cancel(*job);
      return job;
    }
  }
  return nullptr;
}

void PoolQueue::report(PoolReport& report) const {
  report.queued = queued_;
  report.running = running_;
  PoolLaneReport all;
  for (const Lane& lane : lanes_) {
    report.lanes.push_back(lane.report);
    all.run_time.total += lane.report.run_time.total;
    all.cpu_time += lane.report.cpu_time;
    all.unmeasured_time += lane.report.unmeasured_time;
  }
  report.blocked_share = all.blocked_share();
}

}  // namespace weir
