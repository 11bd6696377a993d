// The pages about a runtime and its program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/detail/pages/core_snapshots.hpp"
#include "weir/admin/detail/pages/history.hpp"
#include "weir/admin/detail/pages/page.hpp"
#include "weir/config/values.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/log/log_service.hpp"
#include "weir/runtime/pool/pool_report.hpp"
#include "weir/runtime/task_report.hpp"

namespace weir::admin {

/// The data of the pages about a runtime.
struct RuntimeView {
  Observation seen;
  std::vector<CoreAnswer> cores;
  std::vector<std::pair<std::string, PoolReport>> pools;  ///< the program's, by name
  std::optional<http::MemoryBound> bound;
  RouteObservation routes;
};

/// A thing that looks wrong, and the page that shows it.
struct Finding {
  Tone tone = Tone::warning;
  std::string text;
  std::string page;
};

/// Returns what looks wrong: busy cores, cores without an answer, slow turns, waiting work, memory
/// that grows, refused connections.
std::vector<Finding> findings_of(const RuntimeView& view);

Section findings_section(const std::vector<Finding>& findings);
Section summary_section(const RuntimeView& view);
Page cores_page(const RuntimeView& view);
Page pools_page(const RuntimeView& view);
Page slow_turns_page(const RuntimeView& view);
Page memory_page(const RuntimeView& view);
Page routes_page(const RuntimeView& view);
/// Adds routes that are slow or fail.
void find_route_faults(const RuntimeView& view, std::vector<Finding>& findings);
Page connections_page(const RuntimeView& view);
Page clients_page(const RuntimeView& view);
/// Adds clients whose targets cannot be reached, and servers without room for connections.
void find_connection_faults(const RuntimeView& view, std::vector<Finding>& findings);
Page timers_page(const RuntimeView& view);

/// Returns the page of the tasks that wait, as a tree and as a table.
Page tasks_page(const TaskReport& report);

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
