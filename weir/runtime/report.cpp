#include "weir/runtime/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string_view>

#include "weir/base/text/detail/grouped_number.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/messaging/detail/broadcast_ring.hpp"
#include "weir/task/combinators.hpp"

namespace weir {
namespace {

struct Row {
  std::string_view name;
  std::uint64_t CoreReport::* count;
};
constexpr std::array rows{
    Row{"turns", &CoreReport::turns},
    Row{"slow turns", &CoreReport::slow_turns},
    Row{"runs", &CoreReport::runs},
    Row{"posts from other threads", &CoreReport::received},
    Row{"inbox depth", &CoreReport::inbox_depth},
    Row{"inbox depth, maximum", &CoreReport::inbox_depth_max},
    Row{"system calls", &CoreReport::system_calls},
    Row{"bytes received", &CoreReport::bytes_received},
    Row{"bytes sent", &CoreReport::bytes_sent},
    Row{"accepts", &CoreReport::accepts},
    Row{"open streams", &CoreReport::connections},
    Row{"handed over", &CoreReport::handed_over},
    Row{"taken over", &CoreReport::taken_over},
    Row{"accept pauses", &CoreReport::accept_pauses},
    Row{"connections dropped", &CoreReport::connections_dropped},
    Row{"exceptions dropped", &CoreReport::exceptions_dropped},
    Row{"broadcasts missed", &CoreReport::values_missed},
    Row{"frames in use", &CoreReport::frames_in_use},
    Row{"buffers in use", &CoreReport::buffers_in_use},
    Row{"blocks in use", &CoreReport::blocks_in_use},
    Row{"cached bytes", &CoreReport::cached_bytes},
};

void add(CoreReport& sum, const CoreReport& core) {
  sum.up += core.up;
  sum.cpu_time += core.cpu_time;
  sum.run_time += core.run_time;
  sum.wait_time += core.wait_time;
  for (const Row& row : rows) sum.*row.count += core.*row.count;
  // Not the sum: the inbox of no core had that depth.
  sum.inbox_depth_max = std::max(sum.inbox_depth_max - core.inbox_depth_max, core.inbox_depth_max);
  MetricSnapshot metrics;
  for (const Metric& each : sum.metrics) metrics.add(each);
  for (const Metric& each : core.metrics) metrics.add(each);
  sum.metrics = metrics.metrics();
}

std::string percent(double part) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * part);
  return text.data();
}

std::string seconds(Duration length) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f s", std::chrono::duration<double>(length).count());
  return text.data();
}

/// Aligned columns: the first one to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }

  void add(std::vector<std::string> cells) {
    if (widths_.size() < cells.size()) widths_.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], cells[i].size());
    }
    lines_.push_back(std::move(cells));
  }
  std::string to_text() const {
    std::string text;
    for (const auto& cells : lines_) {
      text += cells[0];
      text.append(widths_[0] - cells[0].size(), ' ');
      for (std::size_t i = 1; i < cells.size(); ++i) {
        text.append(2 + widths_[i] - cells[i].size(), ' ').append(cells[i]);
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> lines_;
};

// Maximum number of cores with a column each; a larger report shows the least and the most.
constexpr std::size_t columns_max = 8;

/// A CoreTable contains the lines of a report that have a number for each core.
class CoreTable {
 public:
  explicit CoreTable(const RuntimeReport& report)
      : cores_(report.cores), total_(report.total()), table_(head(report)) {}

  template <class Value, class Text>
  void add(std::string_view name, const Value& value, const Text& text) {
    std::vector<std::string> cells{std::string(name), text(value(total_))};
    if (cores_.size() <= columns_max) {
      for (const CoreReport& core : cores_) cells.push_back(text(value(core)));
    } else {
      const auto by_value = [&value](const CoreReport& one, const CoreReport& other) {
        return value(one) < value(other);
      };
      const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), by_value);
      cells.push_back(text(value(*least)));
      cells.push_back(text(value(*most)));
    }
    table_.add(std::move(cells));
  }
  void add_times() {
    add("busy", [](const CoreReport& core) { return core.busy(); }, percent);
    add("CPU time", [](const CoreReport& core) { return core.cpu_time; }, seconds);
    add("run time", [](const CoreReport& core) { return core.run_time; }, seconds);
  }
  void add_counts() {
    for (const Row& row : rows) {
      add(row.name, [&row](const CoreReport& core) { return core.*row.count; }, detail::grouped);
    }
  }
  void add_metrics() {
    for (const Metric& metric : total_.metrics) {
      const auto value = [&metric](const CoreReport& core) -> std::uint64_t {
        const auto found = std::ranges::find(core.metrics, metric.name, &Metric::name);
        return found == core.metrics.end() ? 0 : found->value;
      };
      add(metric.name, value, detail::grouped);
    }
  }
  std::string to_text() const { return table_.to_text(); }

 private:
  static std::vector<std::string> head(const RuntimeReport& report) {
    std::vector<std::string> cells{"", "total"};
    if (report.cores.size() > columns_max) {
      cells.insert(cells.end(), {"least", "most"});
      return cells;
    }
    for (const CoreReport& core : report.cores) {
      cells.push_back("core " + std::to_string(core.core));
    }
    return cells;
  }

  const std::vector<CoreReport>& cores_;
  CoreReport total_;
  Table table_;
};

std::string stalls_text(const std::vector<loop::StallSummary>& places) {
  std::string text;
  for (const loop::StallSummary& place : places) {
    const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(place.longest);
    text += "slow turns: " + detail::grouped(place.turns) + ", longest " +
            detail::grouped(static_cast<std::uint64_t>(longest.count())) + " ms: " + place.name +
            "\n";
  }
  return text;
}

std::string pool_text(const PoolReport& pool) {
  std::string text = "pool: " + std::to_string(pool.running) + " of " + std::to_string(pool.size) +
                     " threads busy, " + detail::grouped(pool.queued) + " queued\n";
  for (const PoolLaneReport& lane : pool.lanes) {
    text += "pool lane " + lane.name + ": " + detail::grouped(lane.finished) + " finished, " +
            detail::grouped(lane.rejected) + " rejected, " + detail::grouped(lane.cancelled) +
            " cancelled\n";
  }
  return text;
}

}  // namespace

double CoreReport::busy() const noexcept {
  if (up <= Duration(0)) return 0;
  const Duration worked = cpu_time > Duration(0) ? cpu_time : run_time;
  return std::clamp(static_cast<double>(worked.count()) / static_cast<double>(up.count()), 0.0,
                    1.0);
}

CoreReport RuntimeReport::total() const {
  CoreReport sum;
  for (const CoreReport& core : cores) add(sum, core);
  return sum;
}

std::string RuntimeReport::to_text() const {
  if (cores.empty()) return "no core has run yet\n";
  std::string text = std::to_string(cores.size()) + (cores.size() == 1 ? " core, " : " cores, ") +
                     cores.front().backend + (running ? ", up " : ", ended after ") + seconds(up) +
                     ", " + detail::grouped(connections) + " connections open\n";
  CoreTable table(*this);
  table.add_times();
  table.add_counts();
  table.add_metrics();
  text += table.to_text();
  text += stalls_text(stalls);
  if (pool) text += pool_text(*pool);
  return text;
}

std::ostream& operator<<(std::ostream& out, const RuntimeReport& report) {
  return out << report.to_text();
}

CoreReport report_on(Loop& loop) {
  const LoopCounters& counters = loop.counters();
  const loop::BackendCounters& backend = loop.backend().counters();
  const auto length = [](const detail::Counter& nanoseconds) {
    return Duration(static_cast<std::int64_t>(nanoseconds.value()));
  };
  CoreReport report;
  report.core = loop.core();
  report.backend = loop.backend().name();
  report.cpu_time = loop.metrics().cpu_time();
  report.run_time = length(counters.run_time);
  report.wait_time = length(counters.wait_time);
  report.turns = counters.turns.value();
  report.slow_turns = counters.slow_turns.value();
  report.runs = counters.ran.value();
  report.received = counters.received.value();
  report.inbox_depth = loop.inbox_depth();
  report.inbox_depth_max = counters.inbox_depth_max.value();
  report.system_calls = backend.system_calls.value();
  report.bytes_received = backend.bytes_received.value();
  report.bytes_sent = backend.bytes_sent.value();
  report.accepts = backend.accepts.value();
  const auto& connections = ConnectionCounters::of(loop);
  report.connections = connections.open.value();
  report.handed_over = connections.handed_over.value();
  report.taken_over = connections.taken_over.value();
  report.accept_pauses = backend.accept_pauses.value();
  report.connections_dropped = connections.dropped.value();
  report.exceptions_dropped = detail::DroppedExceptions::of(loop).count.value();
  report.values_missed = detail::MissedValues::of(loop).count.value();
  report.frames_in_use = loop.blocks().blocks_in_use(BlockUse::frame);
  report.buffers_in_use = loop.blocks().blocks_in_use(BlockUse::buffer);
  report.blocks_in_use = loop.blocks().blocks_in_use();
  report.cached_bytes = loop.blocks().cached_bytes();
  report.metrics = loop.metrics().read().metrics();
  return report;
}

}  // namespace weir
