// The page about routes.
#include <algorithm>
#include <chrono>
#include <string>

#include "weir/admin/detail/pages/runtime_pages.hpp"

namespace weir::admin {
namespace {

constexpr Duration slow_median = std::chrono::milliseconds(500);
constexpr std::uint64_t requests_min = 3;  // for a finding

struct RouteRow {
  std::string name;
  RouteCounts now;
  RouteCounts recent;  // of the recent time alone
  double rate = 0;
};

/// Returns the routes, those with most recent requests first.
std::vector<RouteRow> rows_of(const RuntimeView& view) {
  std::vector<RouteRow> rows;
  for (const RouteCounts& each : view.routes.now) {
    if (each.requests == 0) continue;
    RouteRow row{.name = name_of(each), .now = each, .recent = each};
    const auto same = [&](const RouteCounts& old) {
      return old.route == each.route && old.method == each.method;
    };
    const auto old = std::ranges::find_if(view.routes.recent, same);
    if (old != view.routes.recent.end()) {
      row.recent.requests -= std::min(old->requests, each.requests);
      row.recent.failures -= std::min(old->failures, each.failures);
      row.recent.times.subtract(old->times);
    }
    if (view.routes.recent_age > Duration::zero()) {
      row.rate = rate_of(row.recent.requests, 0, view.routes.recent_age);
    }
    rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, [](const RouteRow& one, const RouteRow& other) {
    return one.rate != other.rate ? one.rate > other.rate : one.now.requests > other.now.requests;
  });
  return rows;
}

/// Returns the times of the recent requests; those since the start if there were none.
const TimeHistogram& times_of(const RouteRow& row) {
  return row.recent.requests > 0 ? row.recent.times : row.now.times;
}

}  // namespace

Page routes_page(const RuntimeView& view) {
  Page page{.name = "routes", .title = "Routes"};
  page.note =
      "Times begin with the turn in which the request arrived, and end with the turn in which the "
      "response was handed over. They are those of the last seconds, or of all requests if there "
      "were none.";
  Section table{.key = "routes", .title = ""};
  table.when_empty =
      "No request has ended. A server is here if its observer is that of the admin listener.";
  table.columns = {{"route", "route"},           {"requests_per_second", "requests/s"},
                   {"p50_seconds", "p50"},       {"p90_seconds", "p90"},
                   {"p99_seconds", "p99"},       {"longest_seconds", "longest"},
                   {"requests", "requests"},     {"failures", "failures (5xx)"},
                   {"incomplete", "client left"}};
  for (const RouteRow& each : rows_of(view)) {
    const TimeHistogram& times = times_of(each);
    const Duration median = times.quantile(0.5);
    table.rows.push_back(
        {each.name, Cell::rate(each.rate),
         Cell::time(median).with(median >= slow_median ? Tone::warning : Tone::plain),
         Cell::time(times.quantile(0.9)), Cell::time(times.quantile(0.99)),
         Cell::time(each.now.longest), Cell::number(each.now.requests),
         Cell::number(each.now.failures).with(each.now.failures > 0 ? Tone::warning : Tone::plain),
         Cell::number(each.now.incomplete)});
  }
  page.sections.push_back(std::move(table));
  return page;
}

void find_route_faults(const RuntimeView& view, std::vector<Finding>& findings) {
  for (const RouteRow& each : rows_of(view)) {
    if (each.recent.requests < requests_min) continue;
    const Duration median = each.recent.times.quantile(0.5);
    if (median >= slow_median) {
      findings.push_back({Tone::warning,
                          each.name + " takes " + Cell::time(median).to_text() + " (median)",
                          "routes"});
    }
    if (each.recent.failures * 2 > each.recent.requests) {
      findings.push_back({Tone::bad,
                          each.name + " fails: " + std::to_string(each.recent.failures) + " of " +
                              std::to_string(each.recent.requests) + " requests got a 5xx",
                          "routes"});
    }
  }
}

}  // namespace weir::admin
