#include "weir/cores/pool_queue.hpp"

#include <algorithm>
#include <cassert>

namespace weir {

std::size_t PoolQueue::add_lane(const PoolLaneOptions& options) {
  lanes_.emplace_back(options);
  return lanes_.size() - 1;
}

Result<> PoolQueue::push(PoolJob& job, std::size_t lane_index, std::size_t size, Instant now) {
  Lane& lane = lanes_[lane_index];
  const std::size_t leaving = std::min(lane.free(size), size - std::min(size, running_));
  if (lane.report.queued >= leaving && lane.report.queued - leaving >= lane.options.queue_max) {
    if (lane.options.when_full == WhenFull::reject) {
      ++lane.report.refused;
      return fail(Errc::limit_reached);
    }
    // Its coroutine is suspended in either case, and keeps its place in the line.
    ++lane.report.waited_for_room;
  }
  job.lane_ = lane_index;
  job.number_ = next_number_++;
  job.queued_at_ = now;
  lane.jobs.push_back(job);
  ++lane.report.queued;
  ++queued_;
  return {};
}

std::size_t PoolQueue::Lane::free(std::size_t size) const noexcept {
  std::size_t most = options.running_max;
  if (options.share < 1.0) {
    const auto part = static_cast<std::size_t>(static_cast<double>(size) * options.share);
    most = std::min(most, std::max<std::size_t>(part, 1));
  }
  return most - std::min(most, report.running);
}

const PoolQueue::Lane* PoolQueue::next_lane(std::size_t size) const noexcept {
  const Lane* next = nullptr;
  if (queued_ == 0) return next;
  for (const Lane& lane : lanes_) {
    if (lane.jobs.empty() || lane.free(size) == 0) continue;
    if (next == nullptr || lane.options.priority > next->options.priority ||
        (lane.options.priority == next->options.priority &&
         lane.jobs.front()->number_ < next->jobs.front()->number_)) {
      next = &lane;
    }
  }
  return next;
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
  ++lane.report.running;
  ++running_;
  return job;
}

void PoolQueue::finished(PoolJob& job, Instant now) {
  assert(!job.linked());
  Lane& lane = lanes_[job.lane_];
  lane.report.run_time.add(now - job.began_at_);
  ++lane.report.finished;
  --lane.report.running;
  --running_;
  ++finished_;
}

void PoolQueue::give_up(PoolJob& job) {
  Lane& lane = lanes_[job.lane_];
  ++lane.report.cancelled;
  --lane.report.running;
  --running_;
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
  for (const Lane& lane : lanes_) report.lanes.push_back(lane.report);
}

}  // namespace weir
