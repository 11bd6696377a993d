// The pages about a runtime and its program.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/admin/detail/pages/core_snapshots.hpp"
#include "weir/admin/detail/pages/history.hpp"
#include "weir/admin/detail/pages/page.hpp"
#include "weir/admin/detail/pages/route_statistics.hpp"
#include "weir/config/values.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/log/log_service.hpp"
#include "weir/runtime/checks/finding.hpp"
#include "weir/runtime/pool/pool_report.hpp"
#include "weir/runtime/report.hpp"
#include "weir/runtime/task_report.hpp"
#include "weir/task/task.hpp"

namespace weir::admin {

/// The resident memory of a process.
struct ProcessMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t file_bytes = 0;  ///< of files: the program and its libraries
};

/// The data of the pages about a runtime.
struct RuntimeView {
  Observation seen;
  std::optional<ProcessMemory> memory;  ///< nullopt if there is no /proc
  std::vector<CoreAnswer> cores;
  std::vector<std::pair<std::string, PoolReport>> pools;  ///< the program's, by name
  std::optional<http::MemoryBound> bound;
  std::vector<RouteRow> routes;          ///< those with most recent requests first
  std::vector<checks::Finding> machine;  ///< what the machine takes from the service
};

/// A thing that looks wrong, and the page that shows it.
struct Finding {
  Tone tone = Tone::warning;
  std::string text;
  std::string page;         ///< empty: no page shows more
  std::string remedy = {};  ///< what to do next; a command for a fault of the machine
};

using Findings = std::vector<Finding>;

/// Returns the sum of a value over all cores.
inline std::uint64_t sum_of(const RuntimeReport& report, std::uint64_t CoreReport::* value) {
  std::uint64_t sum = 0;
  for (const CoreReport& core : report.cores) sum += core.*value;
  return sum;
}

/// Returns the recent increase of a value of a core for each second.
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

/// Returns the part of the recent time in which a core worked.
double recent_busy(const RuntimeView& view, std::size_t core);

/// The largest number of rows that a table shows. It also shows the number of the other rows.
constexpr std::size_t rows_max = 500;

/// Returns what looks wrong, the worst first: cores without an answer, slow turns, waiting work,
/// targets that cannot be reached, memory that grows, and what the machine takes from the service.
Findings findings_of(const RuntimeView& view);

// Each function adds what looks wrong on one page.
void find_core_faults(const RuntimeView& view, Findings& findings);
void find_slow_turns(const RuntimeView& view, Findings& findings);
void find_pool_faults(const RuntimeView& view, Findings& findings);
void find_connection_faults(const RuntimeView& view, Findings& findings);
void find_client_faults(const RuntimeView& view, Findings& findings);
void find_route_faults(const RuntimeView& view, Findings& findings);
void find_memory_faults(const RuntimeView& view, Findings& findings);
void find_machine_faults(const RuntimeView& view, Findings& findings);

Section findings_section(const Findings& findings);
Section summary_section(const RuntimeView& view);
Page cores_page(const RuntimeView& view);
Page pools_page(const RuntimeView& view);
Page slow_turns_page(const RuntimeView& view);
Page memory_page(const RuntimeView& view);
Page clients_page(const RuntimeView& view);
Page timers_page(const RuntimeView& view);

/// Returns the page of the routes, in several turns of the loop if there are many.
/// Cancel: not affected.
/// Lifetime: the view outlives the task.
Task<Page> routes_page(const RuntimeView& view);
/// Returns the page of the connections, in several turns of the loop if there are many.
/// Cancel: not affected.
/// Lifetime: the view outlives the task.
Task<Page> connections_page(const RuntimeView& view);

/// Returns the page of the tasks that wait, as a tree and as a table. `tree` is the text of the
/// report.
/// Cancel: not affected.
/// Lifetime: the report outlives the task.
Task<Page> tasks_page(const TaskReport& report, std::string tree);

Page configuration_page(const std::vector<config::ShownValue>& values);

/// Returns the page of the levels, with a form for each logger.
Page log_levels_page(const LogService& logs);

/// The fields of the form of a logger.
struct LevelForm {
  std::string name;
  LogLevel level{};  // without a default, so that a form must have it
};

/// Sets the level of a logger that exists, or of all others for an empty name. Returns 303 to the
/// page of the levels; 404 for an unknown name, so that no request makes the service store one.
http::Response set_log_level(LogService& logs, const LevelForm& form);

}  // namespace weir::admin
