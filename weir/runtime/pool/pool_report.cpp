#include "weir/runtime/pool/pool_report.hpp"

#include <algorithm>

namespace weir {

std::string_view describe(SizeReason reason) noexcept {
  switch (reason) {
    case SizeReason::started:
      return "initial size";
    case SizeReason::set:
      return "set by the program";
    case SizeReason::all_blocked:
      return "all threads with work are blocked";
    case SizeReason::some_blocked:
      return "fewer threads run than there are CPUs";
    case SizeReason::too_many_running:
      return "more threads run than there are CPUs";
    case SizeReason::no_gain:
      return "more threads did not increase the throughput";
    case SizeReason::little_work:
      return "some threads had no work";
    case SizeReason::no_threads_left:
      return "the platform cannot start more threads";
    case SizeReason::retry:
      return "retry after threads could not be started";
  }
  return "?";
}

double PoolLaneReport::blocked_share() const noexcept {
  const Duration seen = run_time.total - unmeasured_time;
  if (seen <= Duration(0)) return 0;
  return std::clamp(1 - static_cast<double>(cpu_time.count()) / static_cast<double>(seen.count()),
                    0.0, 1.0);
}

}  // namespace weir
