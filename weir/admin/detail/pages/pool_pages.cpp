// The page about pools of threads.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"

namespace weir::admin {
namespace {

constexpr Duration long_queue_wait = std::chrono::milliseconds(100);

struct PoolView {
  std::string name;
  const PoolReport* now;
  const PoolReport* recent;
};

std::vector<PoolView> pools_of(const RuntimeView& view) {
  std::vector<PoolView> pools;
  const RuntimeReport& before = view.seen.recent;
  if (view.seen.now.pool) {
    pools.push_back({"shared", &*view.seen.now.pool, before.pool ? &*before.pool : nullptr});
  }
  for (const auto& [name, report] : view.pools) pools.push_back({name, &report, nullptr});
  return pools;
}

/// Returns true if all threads have work and more work waits.
bool is_saturated(const PoolReport& pool) {
  return pool.queued > 0 && pool.running >= pool.size;
}

std::vector<Cell> lane_row(const PoolView& pool, std::size_t index, Duration elapsed) {
  const PoolLaneReport& lane = pool.now->lanes[index];
  Cell per_second;
  Duration wait = lane.queue_wait.mean();
  if (pool.recent != nullptr && index < pool.recent->lanes.size()) {
    const PoolLaneReport& before = pool.recent->lanes[index];
    per_second = Cell::rate(rate_of(lane.finished, before.finished, elapsed));
    const auto count = static_cast<std::int64_t>(lane.queue_wait.count - before.queue_wait.count);
    if (count > 0) wait = (lane.queue_wait.total - before.queue_wait.total) / count;
  }
  return {pool.name,
          lane.name.empty() ? std::string("(default)") : lane.name,
          Cell::number(lane.running),
          Cell::number(lane.queued).with(lane.queued > 0 ? Tone::warning : Tone::plain),
          std::move(per_second),
          Cell::number(lane.finished),
          Cell::number(lane.rejected).with(lane.rejected > 0 ? Tone::warning : Tone::plain),
          Cell::time(wait).with(wait > long_queue_wait ? Tone::warning : Tone::plain),
          Cell::time(lane.run_time.mean()),
          Cell::time(lane.run_time.longest),
          Cell::share(lane.blocked_share())};
}

}  // namespace

void find_pool_faults(const RuntimeView& view, Findings& findings) {
  for (const PoolView& pool : pools_of(view)) {
    if (!is_saturated(*pool.now)) continue;
    findings.push_back(
        {Tone::bad,
         "pool " + pool.name + " is saturated: " + std::to_string(pool.now->running) +
             " threads have work and " + std::to_string(pool.now->queued) + " calls wait",
         "pools", "make the calls shorter, or the pool larger"});
  }
}

Page pools_page(const RuntimeView& view) {
  std::string note =
      "Threads for work that blocks. A pool is saturated if all of its threads have work and more "
      "work waits.";
  Section table{.when_empty = "No pool has had work."};
  table.columns = {{"name", "pool"},       {"state", "state"},
                   {"size", "threads"},    {"running", "running"},
                   {"queued", "queued"},   {"reason", "reason for the size"},
                   {"blocked", "blocked"}, {"evidence", "evidence"}};
  Section lanes{.key = "lanes", .title = "Lanes", .when_empty = "None."};
  lanes.columns = {{"pool", "pool"},
                   {"lane", "lane"},
                   {"running", "running"},
                   {"queued", "queued"},
                   {"finished_per_second", "finished/s"},
                   {"finished", "finished"},
                   {"rejected", "rejected"},
                   {"queue_wait_seconds", "mean wait"},
                   {"run_seconds", "mean run"},
                   {"run_seconds_max", "longest run"},
                   {"blocked", "blocked"}};
  for (const PoolView& pool : pools_of(view)) {
    const PoolReport& now = *pool.now;
    constexpr std::array<std::string_view, 3> evidence{"none", "thread states", "CPU clocks"};
    Cell state = is_saturated(now) ? Cell("saturated").with(Tone::bad)
                                   : Cell(now.running > 0 ? "works" : "idle").with(Tone::good);
    table.rows.push_back({pool.name, std::move(state), Cell::number(now.size),
                          Cell::number(now.running), Cell::number(now.queued),
                          describe(now.last_change.reason), Cell::share(now.blocked_share),
                          evidence[static_cast<std::size_t>(now.evidence)]});
    for (std::size_t i = 0; i < now.lanes.size(); ++i) {
      lanes.rows.push_back(lane_row(pool, i, view.seen.recent_age));
    }
  }
  Page page = table_page("pools", "Pools", std::move(note), std::move(table));
  page.sections.push_back(std::move(lanes));
  return page;
}

}  // namespace weir::admin
