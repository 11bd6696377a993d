// The page about the tasks that wait.
#include <algorithm>
#include <string>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {
namespace {

Cell text_or_none(const std::string& text) {
  return text.empty() ? Cell() : Cell(text);
}

Section cores_section(const TaskReport& report) {
  Section section{.key = "cores", .title = "Cores"};
  section.columns = {{"core", "core"},
                     {"answered", "answered"},
                     {"waits", "tasks that wait"},
                     {"left_out", "left out"},
                     {"runs", "runs"}};
  for (const TaskCore& each : report.cores) {
    section.rows.push_back({Cell::number(each.core),
                            Cell::flag(each.answered).with(each.answered ? Tone::plain : Tone::bad),
                            Cell::number(each.waits), Cell::number(each.left_out),
                            text_or_none(each.runs)});
  }
  return section;
}

}  // namespace

Task<Page> tasks_page(const TaskReport& report, std::string text) {
  TurnBudget budget(*(co_await this_context()).loop);
  Page page{.name = "tasks", .title = "Tasks"};
  page.note =
      "A task stands below the task that waits for it. The age is the time since the task was "
      "made, so its present wait is not older. Tasks that are ready to run are not found.";
  page.sections.push_back(cores_section(report));
  Section tree{.key = "tree", .title = "Tree"};
  tree.preformatted = std::move(text);
  page.sections.push_back(std::move(tree));
  Section table{.key = "tasks", .title = "All", .when_empty = "No task waits."};
  table.columns = {{"index", "index"},     {"parent", "parent"}, {"core", "core"},
                   {"function", "task"},   {"awaits", "awaits"}, {"run_by", "run by"},
                   {"age_seconds", "age"}, {"count", "count"},   {"trace_name", "for"},
                   {"trace_id", "id"}};
  const std::size_t shown = std::min(report.entries.size(), rows_max);
  for (std::size_t i = 0; i < shown; ++i) {
    co_await budget.item();
    const TaskEntry& each = report.entries[i];
    const bool has_age = each.age >= Duration::zero();
    table.rows.push_back(
        {Cell::number(i), each.parent == TaskEntry::none ? Cell() : Cell::number(each.parent),
         Cell::number(each.core), each.function, text_or_none(each.awaits),
         text_or_none(each.run_by), has_age ? Cell::time(each.age) : Cell(),
         Cell::number(each.count), text_or_none(each.trace_name), text_or_none(each.trace_id)});
  }
  table.left_out = report.entries.size() - shown;
  page.sections.push_back(std::move(table));
  co_return page;
}

}  // namespace weir::admin
