// The page about routes.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {
namespace {

constexpr Duration slow_median = std::chrono::milliseconds(250);
constexpr std::uint64_t requests_min = 3;  // for a finding

Tone tone_of(Duration time) {
  return time >= slow_median ? Tone::warning : Tone::plain;
}

std::vector<Cell> row_of(const RouteRow& each) {
  return {name_of(each.route, each.method),
          Cell::rate(each.rate),
          Cell::time(each.p50).with(tone_of(each.p50)),
          Cell::time(each.p90).with(tone_of(each.p90)),
          Cell::time(each.p99).with(tone_of(each.p99)),
          Cell::time(each.longest),
          Cell::number(each.requests),
          Cell::number(each.failures).with(each.failures > 0 ? Tone::warning : Tone::plain),
          Cell::number(each.incomplete)};
}

}  // namespace

Task<Page> routes_page(const RuntimeView& view) {
  TurnBudget budget(*(co_await this_context()).loop);
  std::string note =
      "Times begin with the turn in which the request arrived, and end with the turn in which the "
      "response was handed over. They are those of the last seconds, or of all requests if there "
      "were none. Requests that have not ended are on the page of tasks.";
  Section table;
  table.when_empty =
      "No request has ended. A server is here if its observer is that of the admin listener.";
  table.columns = {{"route", "route"},           {"requests_per_second", "requests/s"},
                   {"p50_seconds", "p50"},       {"p90_seconds", "p90"},
                   {"p99_seconds", "p99"},       {"longest_seconds", "longest"},
                   {"requests", "requests"},     {"failures", "failures (5xx)"},
                   {"incomplete", "client left"}};
  const std::size_t shown = std::min(view.routes.size(), rows_max);
  for (std::size_t i = 0; i < shown; ++i) {
    table.rows.push_back(row_of(view.routes[i]));
    co_await budget.item();
  }
  table.left_out = view.routes.size() - shown;
  co_return table_page("routes", "Routes", std::move(note), std::move(table));
}

void find_route_faults(const RuntimeView& view, Findings& findings) {
  for (const RouteRow& each : view.routes) {
    if (each.recent_requests < requests_min) continue;
    const std::string name = name_of(each.route, each.method);
    if (each.recent_failures * 2 > each.recent_requests) {
      findings.push_back({Tone::bad,
                          name + " fails: " + std::to_string(each.recent_failures) + " of " +
                              std::to_string(each.recent_requests) + " requests got a 5xx",
                          "routes", "look in the log, and at the targets of clients"});
    }
    if (each.p50 >= slow_median) {
      findings.push_back({Tone::warning,
                          name + " takes " + Cell::time(each.p50).to_text() + " (median)", "routes",
                          "the page of tasks shows what its requests wait for"});
    }
  }
}

}  // namespace weir::admin
