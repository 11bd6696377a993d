#include "weir/runtime/pool/detail/blocking_call.hpp"

#include "weir/runtime/pool/detail/pool_threads.hpp"

namespace weir {

bool BlockingJob::begin() {
  // Join before submit(). The end of the job comes through the inbox, which this loop does not read
  // before this function returns.
  if (!join()) {
    rejection_ = Errc::cancelled;
    return false;
  }
  trace_ = context().trace();
  if (auto queued = threads_.submit(*this); !queued) {
    rejection_ = queued.error();
    return false;
  }
  return true;
}

void BlockingJob::on_cancel(CancelNode& node) {
  auto& job = static_cast<BlockingJob&>(node);
  // The job is on its way to its loop, and its pool may be gone. acquire: nothing below may
  // happen before this check; the loop's inbox orders the end itself.
  if (job.phase_.load(std::memory_order_acquire) == Phase::finished) return;
  job.threads_.cancel(job);
}

}  // namespace weir
