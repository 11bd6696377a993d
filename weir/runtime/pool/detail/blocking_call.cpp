#include "weir/runtime/blocking_job.hpp"

#include "weir/runtime/pool_crew.hpp"

namespace weir {

bool BlockingJob::begin() {
  if (context().cancelled()) {
    refusal_ = Errc::cancelled;
    return false;
  }
  unit_ = context().unit();
  // Before it can end: its end comes home by this loop's inbox, which is not looked at meanwhile.
  if (context().cancel != nullptr) context().cancel->add(*this);
  if (auto queued = crew_.submit(*this); !queued) {
    refusal_ = queued.error();
    return false;
  }
  return true;
}

void BlockingJob::ask(CancelNode& node) {
  auto& job = static_cast<BlockingJob&>(node);
  // It is on its way home, and its pool may be gone. acquire: nothing that follows here may be
  // done before this is known; the end itself is ordered by the loop's inbox.
  if (job.phase_.load(std::memory_order_acquire) == Phase::finished) return;
  job.crew_.cancel(job);
}

}  // namespace weir
