#include "weir/admin/detail/pages/runtime_pages.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace weir::admin {
namespace {

constexpr double busy_share = 0.9;
constexpr Duration slow_answer = std::chrono::milliseconds(50);
constexpr Duration long_queue_wait = std::chrono::milliseconds(100);

/// Returns the part of the recent time in which a core worked.
double recent_busy(const RuntimeView& view, std::size_t core) {
  const CoreReport& now = view.seen.now.cores[core];
  if (core >= view.seen.recent.cores.size() || view.seen.recent_age <= Duration::zero()) return 0;
  const CoreReport& before = view.seen.recent.cores[core];
  // In a simulation there is no CPU time.
  const Duration worked = now.cpu_time > Duration::zero() ? now.cpu_time - before.cpu_time
                                                          : now.run_time - before.run_time;
  const std::chrono::duration<double> part = worked;
  return std::clamp(part / std::chrono::duration<double>(view.seen.recent_age), 0.0, 1.0);
}

template <class Value>
double recent_rate(const RuntimeView& view, std::size_t core, const Value& value) {
  if (core >= view.seen.recent.cores.size()) return 0;
  return rate_of(value(view.seen.now.cores[core]), value(view.seen.recent.cores[core]),
                 view.seen.recent_age);
}

template <class Value>
double total_rate(const RuntimeView& view, const Value& value) {
  double sum = 0;
  for (std::size_t i = 0; i < view.seen.now.cores.size(); ++i) sum += recent_rate(view, i, value);
  return sum;
}

const auto requests_of = [](const CoreReport& core) { return metric_of(core, "http requests"); };

/// Returns the answer of a core; nullptr if the cores were not asked.
const CoreAnswer* answer_of(const RuntimeView& view, std::size_t core) {
  return core < view.cores.size() ? &view.cores[core] : nullptr;
}

Cell answer_cell(const CoreAnswer* answer) {
  if (answer == nullptr) return {};
  if (answer->answered) return Cell("answers").with(Tone::good);
  return Cell("no answer since " + Cell::time(answer->waited).to_text()).with(Tone::bad);
}

Tone busy_tone(double busy) {
  return busy >= busy_share ? Tone::warning : Tone::plain;
}

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

struct Growth {
  std::string_view key;
  std::string_view label;
  std::uint64_t CoreReport::* value;
  bool bytes;
};
constexpr std::array growing{
    Growth{"frames", "coroutine frames", &CoreReport::frames_in_use, false},
    Growth{"buffers", "buffers", &CoreReport::buffers_in_use, false},
    Growth{"blocks", "blocks: frames, buffers and others", &CoreReport::blocks_in_use, false},
    Growth{"cached", "free blocks, kept for later", &CoreReport::cached_bytes, true},
    Growth{"streams", "open streams", &CoreReport::connections, false},
    Growth{"inbox", "items in inboxes", &CoreReport::inbox_depth, false},
};

std::uint64_t sum_of(const RuntimeReport& report, std::uint64_t CoreReport::* value) {
  std::uint64_t sum = 0;
  for (const CoreReport& core : report.cores) sum += core.*value;
  return sum;
}

/// Returns the growth of a value for each minute; it may be negative.
double growth_of(const RuntimeView& view, std::uint64_t CoreReport::* value) {
  const auto minutes = std::chrono::duration<double, std::ratio<60>>(view.seen.oldest_age).count();
  if (minutes <= 0) return 0;
  return (static_cast<double>(sum_of(view.seen.now, value)) -
          static_cast<double>(sum_of(view.seen.oldest, value))) /
         minutes;
}

/// Returns true if a value has grown by half, and by at least 500, in at least 20 seconds.
bool grows_much(const RuntimeView& view, std::uint64_t CoreReport::* value) {
  const std::uint64_t now = sum_of(view.seen.now, value);
  const std::uint64_t before = sum_of(view.seen.oldest, value);
  return view.seen.oldest_age >= std::chrono::seconds(20) && now > before + before / 2 &&
         now - before >= 500;
}

/// Returns true if the process has grown by half, and by at least 32 MiB, in at least 20 seconds.
bool resident_grows(const RuntimeView& view) {
  if (!view.seen.resident_bytes || !view.seen.oldest_resident_bytes) return false;
  const std::uint64_t now = *view.seen.resident_bytes;
  const std::uint64_t before = *view.seen.oldest_resident_bytes;
  constexpr std::uint64_t growth_min = 32 * 1024 * 1024;
  return view.seen.oldest_age >= std::chrono::seconds(20) && now > before + before / 2 &&
         now - before >= growth_min;
}

void find_busy_cores(const RuntimeView& view, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < view.seen.now.cores.size(); ++i) {
    const std::string name = "core " + std::to_string(view.seen.now.cores[i].core);
    const CoreAnswer* const answer = answer_of(view, i);
    if (answer != nullptr && !answer->answered) {
      findings.push_back({Tone::bad,
                          name + " does not answer since " + Cell::time(answer->waited).to_text() +
                              ": a task blocks it",
                          "cores"});
      continue;
    }
    if (answer != nullptr && answer->waited > slow_answer) {
      findings.push_back({Tone::warning,
                          name + " answered after " + Cell::time(answer->waited).to_text(),
                          "cores"});
    }
    const double busy = recent_busy(view, i);
    if (busy < busy_share) continue;
    findings.push_back(
        {Tone::warning, name + " is " + Cell::share(busy).to_text() + " busy", "cores"});
  }
}

void find_pool_faults(const RuntimeView& view, std::vector<Finding>& findings) {
  for (const PoolView& pool : pools_of(view)) {
    if (!is_saturated(*pool.now)) continue;
    findings.push_back(
        {Tone::bad,
         "pool " + pool.name + " is saturated: " + std::to_string(pool.now->running) +
             " threads have work and " + std::to_string(pool.now->queued) + " calls wait",
         "pools"});
  }
}

}  // namespace

std::vector<Finding> findings_of(const RuntimeView& view) {
  std::vector<Finding> findings;
  find_busy_cores(view, findings);
  std::uint64_t slow_before = 0;
  for (const CoreReport& core : view.seen.recent.cores) slow_before += core.slow_turns;
  const std::uint64_t slow = sum_of(view.seen.now, &CoreReport::slow_turns);
  if (view.seen.recent_age > Duration::zero() && slow > slow_before) {
    std::string cause;
    if (!view.seen.now.stalls.empty()) cause = "; most by " + view.seen.now.stalls.front().name;
    findings.push_back({Tone::bad,
                        std::to_string(slow - slow_before) + " slow turns in the last " +
                            Cell::time(view.seen.recent_age).to_text() + cause,
                        "slow_turns"});
  } else if (!view.seen.now.stalls.empty()) {
    findings.push_back({Tone::warning,
                        std::to_string(slow) + " slow turns since the start; most by " +
                            view.seen.now.stalls.front().name,
                        "slow_turns"});
  }
  find_pool_faults(view, findings);
  find_connection_faults(view, findings);
  find_route_faults(view, findings);
  for (const Growth& each : growing) {
    if (each.bytes || !grows_much(view, each.value)) continue;
    findings.push_back({Tone::warning,
                        std::string(each.label) + " grew from " +
                            Cell::number(sum_of(view.seen.oldest, each.value)).to_text() + " to " +
                            Cell::number(sum_of(view.seen.now, each.value)).to_text() + " in " +
                            Cell::time(view.seen.oldest_age).to_text() + ", which may be a leak",
                        "memory"});
  }
  if (resident_grows(view)) {
    findings.push_back({Tone::warning,
                        "resident memory grew from " +
                            Cell::bytes(*view.seen.oldest_resident_bytes).to_text() + " to " +
                            Cell::bytes(*view.seen.resident_bytes).to_text() + " in " +
                            Cell::time(view.seen.oldest_age).to_text() + ", which may be a leak",
                        "memory"});
  }
  const double rejected = total_rate(
      view, [](const CoreReport& core) { return metric_of(core, "http connections rejected"); });
  if (rejected > 0) {
    findings.push_back({Tone::bad,
                        "the server refuses " + Cell::rate(rejected).to_text() +
                            " connections a second, because connections_max are open",
                        "connections"});
  }
  return findings;
}

Section findings_section(const std::vector<Finding>& findings) {
  Section section{.key = "findings",
                  .title = "What looks wrong",
                  .columns = {{"finding", "finding"}, {"page", "page"}},
                  .when_empty = "Nothing looks wrong."};
  for (const Finding& each : findings) {
    section.rows.push_back({Cell(each.text).with(each.tone), Cell(each.page).linked(each.page)});
  }
  return section;
}

Section summary_section(const RuntimeView& view) {
  double busy = 0;
  const std::size_t cores = view.seen.now.cores.size();
  for (std::size_t i = 0; i < cores; ++i) busy += recent_busy(view, i);
  if (cores > 0) busy /= static_cast<double>(cores);
  Section section{.key = "summary", .title = "Now"};
  section.facts = {
      {"cores", "cores", Cell::number(cores).linked("cores")},
      {"busy", "busy", Cell::share(busy).with(busy_tone(busy))},
      {"requests_per_second", "requests a second", Cell::rate(total_rate(view, requests_of))},
      {"connections", "open connections", Cell::number(view.seen.now.connections)},
      {"slow_turns", "slow turns", Cell::number(sum_of(view.seen.now, &CoreReport::slow_turns))},
      {"resident_bytes", "resident memory",
       view.seen.resident_bytes ? Cell::bytes(*view.seen.resident_bytes) : Cell()},
      {"observed_seconds", "observed since", Cell::time(view.seen.up)}};
  return section;
}

Page cores_page(const RuntimeView& view) {
  Page page{.name = "cores", .title = "Cores"};
  page.note = "Rates are those of the last " + Cell::time(view.seen.recent_age).to_text() +
              ". A core that does not answer runs a task that blocks it.";
  Section table{.key = "cores", .title = ""};
  table.columns = {{"core", "core"},
                   {"busy", "busy"},
                   {"state", "state"},
                   {"requests_per_second", "requests/s"},
                   {"turns_per_second", "turns/s"},
                   {"runs_per_second", "runs/s"},
                   {"system_calls_per_second", "system calls/s"},
                   {"received_per_second", "bytes in/s"},
                   {"sent_per_second", "bytes out/s"},
                   {"streams", "streams"},
                   {"inbox", "inbox"},
                   {"slow_turns", "slow turns"},
                   {"backend", "backend"}};
  for (std::size_t i = 0; i < view.seen.now.cores.size(); ++i) {
    const CoreReport& core = view.seen.now.cores[i];
    const auto rate = [&](std::uint64_t CoreReport::* value) {
      return recent_rate(view, i, [value](const CoreReport& of) { return of.*value; });
    };
    const double busy = recent_busy(view, i);
    table.rows.push_back(
        {Cell::number(core.core), Cell::share(busy).with(busy_tone(busy)),
         answer_cell(answer_of(view, i)), Cell::rate(recent_rate(view, i, requests_of)),
         Cell::rate(rate(&CoreReport::turns)), Cell::rate(rate(&CoreReport::runs)),
         Cell::rate(rate(&CoreReport::system_calls)),
         Cell::bytes(static_cast<std::uint64_t>(rate(&CoreReport::bytes_received))),
         Cell::bytes(static_cast<std::uint64_t>(rate(&CoreReport::bytes_sent))),
         Cell::number(core.connections), Cell::number(core.inbox_depth),
         Cell::number(core.slow_turns).with(core.slow_turns > 0 ? Tone::warning : Tone::plain),
         core.backend});
  }
  page.sections.push_back(std::move(table));
  Section counters{.key = "counters", .title = "Counters since the start"};
  counters.columns = {{"name", "counter"}, {"total", "total"}, {"per_second", "per second"}};
  const CoreReport total = view.seen.now.total();
  for (const Metric& each : total.metrics) {
    const double rate =
        total_rate(view, [&](const CoreReport& core) { return metric_of(core, each.name); });
    counters.rows.push_back({each.name, Cell::number(each.value),
                             each.kind == Metric::Kind::counter ? Cell::rate(rate) : Cell()});
  }
  page.sections.push_back(std::move(counters));
  return page;
}

Page pools_page(const RuntimeView& view) {
  Page page{.name = "pools", .title = "Pools"};
  page.note =
      "Threads for work that blocks. A pool is saturated if all of its threads have work and more "
      "work waits.";
  Section table{.key = "pools", .title = "", .when_empty = "No pool has had work."};
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
  page.sections.push_back(std::move(table));
  page.sections.push_back(std::move(lanes));
  return page;
}

Page slow_turns_page(const RuntimeView& view) {
  Page page{.name = "slow_turns", .title = "Slow turns"};
  page.note =
      "A turn of a loop is slow if it runs for longer than 50 ms. All other tasks of the core wait "
      "meanwhile. Move the work to a pool, or divide it.";
  Section table{.key = "slow_turns", .title = "", .when_empty = "There was no slow turn."};
  table.columns = {{"cause", "cause"},
                   {"turns", "turns"},
                   {"recent", "in the last seconds"},
                   {"longest_seconds", "longest"}};
  for (const loop::StallSummary& each : view.seen.now.stalls) {
    const auto before =
        std::ranges::find(view.seen.recent.stalls, each.name, &loop::StallSummary::name);
    const std::uint64_t old = before == view.seen.recent.stalls.end() ? 0 : before->turns;
    const std::uint64_t recent = each.turns > old ? each.turns - old : 0;
    table.rows.push_back({each.name, Cell::number(each.turns),
                          Cell::number(recent).with(recent > 0 ? Tone::bad : Tone::plain),
                          Cell::time(each.longest)});
  }
  page.sections.push_back(std::move(table));
  return page;
}

Page memory_page(const RuntimeView& view) {
  Page page{.name = "memory", .title = "Memory"};
  page.note = "Growth is that of the last " + Cell::time(view.seen.oldest_age).to_text() +
              ". Reload this page for some minutes to see a slow leak.";
  Section process{.key = "process", .title = "Process"};
  process.facts = {{"resident_bytes", "resident memory",
                    view.seen.resident_bytes ? Cell::bytes(*view.seen.resident_bytes) : Cell()}};
  if (view.bound) {
    process.facts.push_back(
        {"bound_bytes", "upper bound of the server", Cell::bytes(view.bound->total())});
    process.facts.push_back(
        {"bound_connection_bytes", "bound of a connection", Cell::bytes(view.bound->connection)});
    process.facts.push_back({"bound_idle_connection_bytes", "bound of an idle connection",
                             Cell::bytes(view.bound->idle_connection)});
  }
  page.sections.push_back(std::move(process));
  Section kinds{.key = "kinds", .title = "By kind"};
  kinds.columns = {{"kind", "kind"}, {"now", "now"}, {"growth_per_minute", "growth/minute"}};
  for (const Growth& each : growing) {
    const std::uint64_t now = sum_of(view.seen.now, each.value);
    const Tone tone = grows_much(view, each.value) && !each.bytes ? Tone::warning : Tone::plain;
    kinds.rows.push_back({each.label, each.bytes ? Cell::bytes(now) : Cell::number(now),
                          Cell::rate(growth_of(view, each.value)).with(tone)});
  }
  page.sections.push_back(std::move(kinds));
  Section cores{.key = "cores", .title = "By core"};
  cores.columns = {{"core", "core"},
                   {"frames", "frames"},
                   {"buffers", "buffers"},
                   {"blocks", "blocks"},
                   {"cached_bytes", "free blocks"},
                   {"streams", "streams"}};
  for (const CoreReport& core : view.seen.now.cores) {
    cores.rows.push_back({Cell::number(core.core), Cell::number(core.frames_in_use),
                          Cell::number(core.buffers_in_use), Cell::number(core.blocks_in_use),
                          Cell::bytes(core.cached_bytes), Cell::number(core.connections)});
  }
  page.sections.push_back(std::move(cores));
  return page;
}

Page timers_page(const RuntimeView& view) {
  Page page{.name = "timers", .title = "Timers"};
  page.note = "Each core reads its own timers. \"Took\" is the time that the core needed for this.";
  Section table{.key = "timers", .title = ""};
  table.columns = {{"core", "core"},          {"state", "state"},
                   {"armed", "armed timers"}, {"next_seconds", "next is due in"},
                   {"draining", "draining"},  {"answer_seconds", "answered after"},
                   {"took_seconds", "took"}};
  for (const CoreAnswer& each : view.cores) {
    const CoreSnapshot& core = each.snapshot;
    Cell next;
    if (each.answered && core.next_timer) next = Cell::time(*core.next_timer);
    table.rows.push_back({Cell::number(each.core), answer_cell(&each), Cell::number(core.timers),
                          std::move(next), Cell::flag(core.draining), Cell::time(each.waited),
                          Cell::time(core.took)});
  }
  page.sections.push_back(std::move(table));
  return page;
}

}  // namespace weir::admin
