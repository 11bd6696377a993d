#include "weir/telemetry/metrics/detail/runtime_metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "weir/base/version.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/pool/detail/pool_list.hpp"
#include "weir/runtime/report.hpp"

namespace weir::telemetry::detail {
namespace {

constexpr MetricKind counter = MetricKind::counter;
constexpr MetricKind gauge = MetricKind::gauge;

MetricKind kind_of(Metric::Kind kind) noexcept {
  return kind == Metric::Kind::gauge ? gauge : counter;
}

double seconds(Duration length) noexcept {
  return std::chrono::duration<double>(length).count();
}

using CoreRow = weir::detail::MetricRow<CoreReport>;

template <auto Member>
std::uint64_t number(const CoreReport& report) {
  return report.*Member;
}
template <auto Member>
std::uint64_t nanoseconds(const CoreReport& report) {
  return static_cast<std::uint64_t>((report.*Member).count());
}
constexpr MetricInfo time_info(std::string_view name, std::string_view help) {
  return {.name = name, .unit = "s", .help = help, .scale = 1e-9};
}

constexpr std::array core_rows{
    CoreRow{"cpu time", nanoseconds<&CoreReport::cpu_time>,
            time_info("weir.core.cpu.time", "CPU time of the thread of the core.")},
    CoreRow{"run time", nanoseconds<&CoreReport::run_time>,
            time_info("weir.core.run.time", "Wall-clock time in which coroutines ran.")},
    CoreRow{
        "wait time", nanoseconds<&CoreReport::wait_time>,
        time_info("weir.core.wait.time", "Time in the backend: submitting, polling, sleeping.")},
    CoreRow{
        "turns", number<&CoreReport::turns>, {"weir.core.turns", "{turn}", "Turns of the loop."}},
    CoreRow{"turns slow",
            number<&CoreReport::slow_turns>,
            {"weir.core.turns.slow", "{turn}", "Turns that ran for longer than 50 ms."}},
    CoreRow{"runs",
            number<&CoreReport::runs>,
            {"weir.core.runs", "{run}", "Coroutines and other work items that ran."}},
    CoreRow{"inbox received",
            number<&CoreReport::received>,
            {"weir.core.inbox.received", "{item}", "Items that other threads have sent."}},
    CoreRow{"inbox depth",
            number<&CoreReport::inbox_depth>,
            {"weir.core.inbox.depth", "{item}", "Items in the inbox now."},
            Metric::Kind::gauge},
    CoreRow{"inbox depth max",
            number<&CoreReport::inbox_depth_max>,
            {"weir.core.inbox.depth.max", "{item}", "Most items found in the inbox."},
            Metric::Kind::gauge},
    CoreRow{"system calls",
            number<&CoreReport::system_calls>,
            {"weir.core.system_calls", "{call}", "System calls of the backend."}},
    CoreRow{"connections accepted",
            number<&CoreReport::accepts>,
            {"weir.core.connections.accepted", "{connection}", "Connections accepted."}},
    CoreRow{"connections open",
            number<&CoreReport::connections>,
            {"weir.core.connections.open", "{connection}", "Streams that are open now."},
            Metric::Kind::gauge},
    CoreRow{"connections handed over",
            number<&CoreReport::handed_over>,
            {"weir.core.connections.handed_over", "{connection}",
             "Connections given to other cores to balance them."}},
    CoreRow{"connections taken over",
            number<&CoreReport::taken_over>,
            {"weir.core.connections.taken_over", "{connection}",
             "Connections that other cores accepted."}},
    CoreRow{"connections dropped",
            number<&CoreReport::connections_dropped>,
            {"weir.core.connections.dropped", "{connection}",
             "Connections closed because memory ran out."}},
    CoreRow{"accept pauses",
            number<&CoreReport::accept_pauses>,
            {"weir.core.accept.pauses", "{pause}",
             "Pauses of accepting because descriptors or memory ran out."}},
    CoreRow{"exceptions dropped",
            number<&CoreReport::exceptions_dropped>,
            {"weir.core.exceptions.dropped", "{exception}",
             "Exceptions whose task's outcome was no longer needed."}},
    CoreRow{"broadcast missed",
            number<&CoreReport::values_missed>,
            {"weir.core.broadcast.missed", "{value}",
             "Values missed by slow subscribers of broadcasts."}},
    CoreRow{"memory cached",
            number<&CoreReport::cached_bytes>,
            {"weir.core.memory.cached", "By", "Bytes in free blocks, kept for later."},
            Metric::Kind::gauge},
};

/// Blocks of a core, by use.
struct BlockMetric {
  const char* use;
  std::uint64_t (*value)(const CoreReport& report);
};
constexpr std::array block_metrics{
    BlockMetric{"frame", number<&CoreReport::frames_in_use>},
    BlockMetric{"buffer", number<&CoreReport::buffers_in_use>},
    BlockMetric{"other",
                [](const CoreReport& report) {
                  const std::uint64_t known = report.frames_in_use + report.buffers_in_use;
                  const std::uint64_t all = report.blocks_in_use;
                  return all > known ? all - known : 0;
                }},
};

bool was_used(const PoolReport& pool) noexcept {
  return pool.threads > 0 || std::ranges::any_of(pool.lanes, [](const PoolLaneReport& lane) {
           return lane.finished + lane.rejected + lane.cancelled > 0;
         });
}

void add_pool(RuntimeMetrics& out, const std::string& name, const PoolReport& pool) {
  const auto number = [](std::size_t value) { return static_cast<double>(value); };
  const auto add = [&](const MetricInfo& info, double value) {
    out.add(info, gauge, value, {{"pool", name}});
  };
  add({"weir.pool.size", "{thread}", "Threads that may have work."}, number(pool.size));
  add({"weir.pool.threads", "{thread}", "Threads that exist."}, number(pool.threads));
  add({"weir.pool.running", "{thread}", "Threads with work."}, number(pool.running));
  add({"weir.pool.queued", "{job}", "Jobs without a thread."}, number(pool.queued));
  add({"weir.pool.blocked", "1", "Share of the run time of jobs without a CPU."},
      pool.blocked_share);
  out.add({"weir.pool.size.reason", "{pool}", "Reason for the present size of the pool."}, gauge, 1,
          {{"pool", name}, {"reason", std::string(describe(pool.last_change.reason))}});
  for (const PoolLaneReport& lane : pool.lanes) {
    const auto add_lane = [&](const char* metric, const char* unit, const char* help,
                              MetricKind kind, double value) {
      out.add({metric, unit, help}, kind, value, {{"pool", name}, {"lane", lane.name}});
    };
    add_lane("weir.pool.lane.queued", "{job}", "Jobs that wait for a thread.", gauge,
             number(lane.queued));
    add_lane("weir.pool.lane.running", "{job}", "Jobs that run.", gauge, number(lane.running));
    add_lane("weir.pool.lane.finished", "{job}", "Jobs that have finished.", counter,
             static_cast<double>(lane.finished));
    add_lane("weir.pool.lane.rejected", "{job}", "Jobs rejected because the queue was full.",
             counter, static_cast<double>(lane.rejected));
    add_lane("weir.pool.lane.cancelled", "{job}", "Jobs cancelled while they were queued.", counter,
             static_cast<double>(lane.cancelled));
    add_lane("weir.pool.lane.queue.time", "s", "Time in the queue of jobs that got a thread.",
             counter, seconds(lane.queue_wait.total));
    add_lane("weir.pool.lane.run.time", "s", "Run time of finished jobs.", counter,
             seconds(lane.run_time.total));
    add_lane("weir.pool.lane.cpu.time", "s", "CPU time of finished jobs.", counter,
             seconds(lane.cpu_time));
  }
}

}  // namespace

ReadMetric& RuntimeMetrics::find(std::string_view name, std::string_view unit,
                                 std::string_view help, MetricKind kind) {
  if (const auto known = by_name_.find(name); known != by_name_.end()) return *known->second;
  ReadMetric& made = metrics_.emplace_back();
  made.name = name;
  made.unit = unit;
  made.help = help;
  made.kind = kind;
  by_name_.emplace(made.name, &made);
  return made;
}

void RuntimeMetrics::add(const MetricInfo& info, MetricKind kind, double value,
                         std::vector<std::pair<std::string, std::string>> labels) {
  ReadMetric& metric = find(info.name, info.unit, info.help, kind);
  metric.samples.push_back({std::move(labels), value});
}

std::optional<ReadMetric> RuntimeMetrics::take() {
  by_name_.clear();
  if (metrics_.empty()) return std::nullopt;
  std::optional<ReadMetric> oldest(std::move(metrics_.front()));
  metrics_.pop_front();
  return oldest;
}

/// Adds up the values of a component's metric over all cores.
void RuntimeMetrics::add_component(const Metric& metric) {
  const MetricKind kind = kind_of(metric.kind);
  const MetricInfo* const info = metric.info;
  ReadMetric& read = info != nullptr ? find(info->name, info->unit, info->help, kind)
                                     : find(metric.name, {}, "Metric of the application.", kind);
  const double value = static_cast<double>(metric.value) * (info != nullptr ? info->scale : 1);
  const std::string_view label = info != nullptr ? info->label_value : std::string_view();
  for (ReadMetric::Sample& each : read.samples) {
    const bool same = each.labels.empty() ? label.empty() : each.labels.front().second == label;
    if (!same) continue;
    each.value += value;
    return;
  }
  ReadMetric::Sample& sample = read.samples.emplace_back();
  if (!label.empty()) sample.labels.emplace_back(info->label, label);
  sample.value = value;
}

void RuntimeMetrics::add_loop(Loop& loop) {
  const CoreReport report = report_on(loop);
  const std::string core = std::to_string(report.core);
  for (const CoreRow& each : core_rows) {
    add(each.info, kind_of(each.kind), static_cast<double>(each.value(report)) * each.info.scale,
        {{"core", core}});
  }
  for (const BlockMetric& each : block_metrics) {
    add({"weir.core.blocks", "{block}", "Blocks of memory in use."}, gauge,
        static_cast<double>(each.value(report)), {{"core", core}, {"use", each.use}});
  }
  const MetricInfo io{"weir.core.network.io", "By", "Bytes that sockets have transferred."};
  add(io, counter, static_cast<double>(report.bytes_received),
      {{"core", core}, {"network.io.direction", "receive"}});
  add(io, counter, static_cast<double>(report.bytes_sent),
      {{"core", core}, {"network.io.direction", "transmit"}});
  add({"weir.core.timers", "{timer}", "Timers that are armed."}, gauge,
      static_cast<double>(loop.timers().armed()), {{"core", core}});
  for (const Metric& each : report.metrics) add_component(each);
}

void RuntimeMetrics::add_group(Loop& loop) {
  add({"weir.build.info", "", "The version of Weir."}, gauge, 1,
      {{"version", std::string(version())}, {"backend", report_on(loop).backend}});
  // relaxed: see ServerConnections.
  add({"weir.server.connections", "{connection}", "Open connections of servers."}, gauge,
      static_cast<double>(ServerConnections::of(loop).open.load(std::memory_order_relaxed)));
  for (const loop::StallSummary& each : loop.group().stall_log().summaries()) {
    add({"weir.stall.turns", "{turn}", "Turns that ran for longer than 50 ms, by cause."}, counter,
        static_cast<double>(each.turns), {{"site", each.name}});
    add({"weir.stall.longest", "s", "Longest turn, by cause."}, gauge, seconds(each.longest),
        {{"site", each.name}});
  }
  for (const NamedPoolReport& each : report_on_pools(loop.platform())) {
    if (was_used(each.report)) add_pool(*this, each.name, each.report);
  }
}

}  // namespace weir::telemetry::detail
