#include "weir/telemetry/metrics/detail/runtime_metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "weir/base/version.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/runtime/report.hpp"

namespace weir::telemetry::detail {
namespace {

constexpr MetricKind counter = MetricKind::counter;
constexpr MetricKind gauge = MetricKind::gauge;

double seconds(Duration length) noexcept {
  return std::chrono::duration<double>(length).count();
}

/// A number of a CoreReport.
struct CoreMetric {
  MetricInfo info;
  MetricKind kind;
  double (*value)(const CoreReport& report);
};

template <auto Member>
double number(const CoreReport& report) {
  return static_cast<double>(report.*Member);
}
template <auto Member>
double length(const CoreReport& report) {
  return seconds(report.*Member);
}

constexpr std::array core_metrics{
    CoreMetric{{"weir.core.cpu.time", "s", "CPU time of the thread of the core."},
               counter,
               length<&CoreReport::cpu_time>},
    CoreMetric{{"weir.core.run.time", "s", "Wall-clock time in which coroutines ran."},
               counter,
               length<&CoreReport::run_time>},
    CoreMetric{{"weir.core.wait.time", "s", "Time in the backend: submitting, polling, sleeping."},
               counter,
               length<&CoreReport::wait_time>},
    CoreMetric{
        {"weir.core.turns", "{turn}", "Turns of the loop."}, counter, number<&CoreReport::turns>},
    CoreMetric{{"weir.core.turns.slow", "{turn}", "Turns that ran for longer than 50 ms."},
               counter,
               number<&CoreReport::slow_turns>},
    CoreMetric{{"weir.core.runs", "{run}", "Coroutines and other work items that ran."},
               counter,
               number<&CoreReport::runs>},
    CoreMetric{{"weir.core.inbox.received", "{item}", "Items that other threads have sent."},
               counter,
               number<&CoreReport::received>},
    CoreMetric{{"weir.core.inbox.depth", "{item}", "Items in the inbox now."},
               gauge,
               number<&CoreReport::inbox_depth>},
    CoreMetric{{"weir.core.inbox.depth.max", "{item}", "Most items found in the inbox."},
               gauge,
               number<&CoreReport::inbox_depth_max>},
    CoreMetric{{"weir.core.system_calls", "{call}", "System calls of the backend."},
               counter,
               number<&CoreReport::system_calls>},
    CoreMetric{{"weir.core.connections.accepted", "{connection}", "Connections accepted."},
               counter,
               number<&CoreReport::accepts>},
    CoreMetric{{"weir.core.connections.open", "{connection}", "Streams that are open now."},
               gauge,
               number<&CoreReport::connections>},
    CoreMetric{{"weir.core.connections.handed_over", "{connection}",
                "Connections given to other cores to balance them."},
               counter,
               number<&CoreReport::handed_over>},
    CoreMetric{{"weir.core.connections.taken_over", "{connection}",
                "Connections that other cores accepted."},
               counter,
               number<&CoreReport::taken_over>},
    CoreMetric{{"weir.core.connections.dropped", "{connection}",
                "Connections closed because memory ran out."},
               counter,
               number<&CoreReport::connections_dropped>},
    CoreMetric{{"weir.core.accept.pauses", "{pause}",
                "Pauses of accepting because descriptors or memory ran out."},
               counter,
               number<&CoreReport::accept_pauses>},
    CoreMetric{{"weir.core.exceptions.dropped", "{exception}",
                "Exceptions whose task's outcome was no longer needed."},
               counter,
               number<&CoreReport::exceptions_dropped>},
    CoreMetric{{"weir.core.broadcast.missed", "{value}",
                "Values missed by slow subscribers of broadcasts."},
               counter,
               number<&CoreReport::values_missed>},
    CoreMetric{{"weir.core.memory.cached", "By", "Bytes in free blocks, kept for later."},
               gauge,
               number<&CoreReport::cached_bytes>},
};

/// Blocks of a core, by use.
struct BlockMetric {
  const char* use;
  double (*value)(const CoreReport& report);
};
constexpr std::array block_metrics{
    BlockMetric{"frame", number<&CoreReport::frames_in_use>},
    BlockMetric{"buffer", number<&CoreReport::buffers_in_use>},
    BlockMetric{"other",
                [](const CoreReport& report) {
                  const std::uint64_t known = report.frames_in_use + report.buffers_in_use;
                  const std::uint64_t all = report.blocks_in_use;
                  return static_cast<double>(all > known ? all - known : 0);
                }},
};

bool was_used(const PoolReport& pool) noexcept {
  return pool.threads > 0 || std::ranges::any_of(pool.lanes, [](const PoolLaneReport& lane) {
           return lane.finished + lane.rejected + lane.cancelled > 0;
         });
}

void add_pool(RuntimeMetrics& out, const PoolReport& pool) {
  const auto number = [](std::size_t value) { return static_cast<double>(value); };
  out.add({"weir.pool.size", "{thread}", "Threads that may have work."}, gauge, number(pool.size));
  out.add({"weir.pool.threads", "{thread}", "Threads that exist."}, gauge, number(pool.threads));
  out.add({"weir.pool.running", "{thread}", "Threads with work."}, gauge, number(pool.running));
  out.add({"weir.pool.queued", "{job}", "Jobs without a thread."}, gauge, number(pool.queued));
  out.add({"weir.pool.blocked", "1", "Share of the run time of jobs without a CPU."}, gauge,
          pool.blocked_share);
  out.add({"weir.pool.size.reason", "{pool}", "Reason for the present size of the pool."}, gauge, 1,
          {{"reason", std::string(describe(pool.last_change.reason))}});
  for (const PoolLaneReport& lane : pool.lanes) {
    const auto add = [&](const char* name, const char* unit, const char* help, MetricKind kind,
                         double value) {
      out.add({name, unit, help}, kind, value, {{"lane", lane.name}});
    };
    add("weir.pool.lane.queued", "{job}", "Jobs that wait for a thread.", gauge,
        number(lane.queued));
    add("weir.pool.lane.running", "{job}", "Jobs that run.", gauge, number(lane.running));
    add("weir.pool.lane.finished", "{job}", "Jobs that have finished.", counter,
        static_cast<double>(lane.finished));
    add("weir.pool.lane.rejected", "{job}", "Jobs rejected because the queue was full.", counter,
        static_cast<double>(lane.rejected));
    add("weir.pool.lane.cancelled", "{job}", "Jobs cancelled while they were queued.", counter,
        static_cast<double>(lane.cancelled));
    add("weir.pool.lane.queue.time", "s", "Time in the queue of jobs that got a thread.", counter,
        seconds(lane.queue_wait.total));
    add("weir.pool.lane.run.time", "s", "Run time of finished jobs.", counter,
        seconds(lane.run_time.total));
    add("weir.pool.lane.cpu.time", "s", "CPU time of finished jobs.", counter,
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

/// Adds up the values of a component's metric over all cores.
void RuntimeMetrics::add_component(const Metric& metric) {
  const MetricKind kind = metric.kind == Metric::Kind::gauge ? gauge : counter;
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
  for (const CoreMetric& each : core_metrics) {
    add(each.info, each.kind, each.value(report), {{"core", core}});
  }
  for (const BlockMetric& each : block_metrics) {
    add({"weir.core.blocks", "{block}", "Blocks of memory in use."}, gauge, each.value(report),
        {{"core", core}, {"use", each.use}});
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
  const PoolReport pool = shared_pool(loop).report();
  if (was_used(pool)) add_pool(*this, pool);
}

}  // namespace weir::telemetry::detail
