#include "weir/runtime/detail/group_report.hpp"

#include <algorithm>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir {
namespace {

bool was_used(const PoolReport& pool) {
  return std::ranges::any_of(pool.lanes, [](const PoolLaneReport& lane) {
    return lane.queued + lane.running + lane.finished + lane.rejected + lane.cancelled != 0;
  });
}

}  // namespace

RuntimeReport report_on_group(Loop& loop) {
  RuntimeReport report;
  report.running = true;
  for (Loop* const each : loop.group().loops()) report.cores.push_back(report_on(*each));
  if (report.cores.empty()) report.cores.push_back(report_on(loop));
  // relaxed: see ServerConnections.
  report.connections = ServerConnections::of(loop).open.load(std::memory_order_relaxed);
  report.stalls = loop.group().stall_log().summaries();
  // A loop without a runtime may have no pool yet.
  if (const SharedPool* const shared = loop.group().slots().find<SharedPool>()) {
    if (PoolReport pool = shared->report(); was_used(pool)) report.pool = std::move(pool);
  }
  return report;
}

}  // namespace weir
