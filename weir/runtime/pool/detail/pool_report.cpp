#include "weir/runtime/pool/detail/pool_report.hpp"

#include <algorithm>

namespace weir {

std::string_view describe(SizeReason reason) noexcept {
  switch (reason) {
    case SizeReason::started:
      return "its first size";
    case SizeReason::set:
      return "set by the program";
    case SizeReason::all_blocked:
      return "all threads with work are blocked";
    case SizeReason::some_blocked:
      return "fewer threads run than there are CPUs";
    case SizeReason::too_many_run:
      return "more threads run than there are CPUs";
    case SizeReason::no_gain:
      return "more threads got no more work done";
    case SizeReason::little_work:
      return "threads found nothing to do";
    case SizeReason::no_threads_left:
      return "no more threads can be started";
    case SizeReason::tries_again:
      return "tries again to start what threads it lacks";
  }
  return "?";
}

double PoolLaneReport::blocked_share() const noexcept {
  const Duration seen = run_time.total - unseen_time;
  if (seen <= Duration(0)) return 0;
  return std::clamp(1 - static_cast<double>(cpu_time.count()) / static_cast<double>(seen.count()),
                    0.0, 1.0);
}

}  // namespace weir
