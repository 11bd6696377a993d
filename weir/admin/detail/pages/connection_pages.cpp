// The pages about open connections, and about the targets of HTTP clients.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {
namespace {

constexpr Duration stuck_after = std::chrono::seconds(10);

/// A connection with the place where it is open.
struct PlacedConnection {
  const ConnectionReport* report;
  unsigned core;
  std::size_t server;
};

/// Returns all connections that the cores have reported, the oldest first.
std::vector<PlacedConnection> connections_of(const RuntimeView& view) {
  std::vector<PlacedConnection> all;
  for (const CoreAnswer& core : view.cores) {
    const std::vector<ServerReport>& servers = core.snapshot->servers;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      for (const ConnectionReport& each : servers[i].connections) {
        all.push_back({&each, core.core, i});
      }
    }
  }
  std::ranges::sort(all, std::ranges::greater(),
                    [](const PlacedConnection& each) { return each.report->age; });
  return all;
}

/// Returns true if a handler has run for so long that it probably waits for something that does not
/// happen.
bool is_stuck(const ConnectionReport& connection) {
  return connection.unanswered.value_or(Duration::zero()) >= stuck_after;
}

std::vector<Cell> row_of(const PlacedConnection& placed) {
  const ConnectionReport& each = *placed.report;
  std::string protocol = std::string(each.protocol) + (each.secure ? " over TLS" : "");
  if (each.streams > 0) {
    protocol += ", " + std::to_string(each.streams) + (each.streams == 1 ? " stream" : " streams");
  }
  return {each.peer.to_string(),
          Cell::time(each.age),
          std::move(protocol),
          each.state,
          each.route.empty() ? Cell() : Cell(each.route),
          each.unanswered
              ? Cell::time(*each.unanswered).with(is_stuck(each) ? Tone::warning : Tone::plain)
              : Cell(),
          each.waits ? Cell::time(*each.waits) : Cell(),
          Cell::bytes(each.received),
          Cell::bytes(each.sent),
          Cell::bytes(each.unsent_bytes),
          Cell::number(placed.core),
          Cell::number(placed.server)};
}

Section servers_section(const RuntimeView& view) {
  Section servers{.key = "servers", .title = "Servers", .when_empty = "No server runs."};
  servers.columns = {
      {"core", "core"},         {"server", "server"},         {"open", "open"},
      {"shown", "reported"},    {"websockets", "WebSockets"}, {"limit", "limit of all cores"},
      {"requests", "requests"}, {"draining", "draining"}};
  for (const CoreAnswer& core : view.cores) {
    for (std::size_t i = 0; i < core.snapshot->servers.size(); ++i) {
      const ServerReport& server = core.snapshot->servers[i];
      servers.rows.push_back({Cell::number(core.core), Cell::number(i), Cell::number(server.open),
                              Cell::number(server.connections.size()),
                              Cell::number(server.websockets),
                              server.connections_max == 0 ? Cell("by descriptors")
                                                          : Cell::number(server.connections_max),
                              Cell::number(server.requests), Cell::flag(server.draining)});
    }
  }
  return servers;
}

/// The sums of one target over all cores.
struct TargetSum {
  std::string origin;
  std::size_t open = 0;
  std::size_t idle = 0;
  std::size_t waiting = 0;
  bool is_full = false;
  std::uint64_t opened = 0;
  std::uint64_t failed = 0;
  std::uint64_t requests_failed = 0;
  std::size_t failing_cores = 0;
  Duration failing{};                         // the longest of all cores
  Duration request_failed = Duration::max();  // time since the last one
  std::error_code error = {};
  std::error_code request_error = {};
};

constexpr Duration lately = std::chrono::seconds(60);

bool has_lost_requests(const TargetSum& target) {
  return target.request_failed <= lately;
}

/// Returns the larger number for the worse target.
int badness_of(const TargetSum& target) {
  if (target.failing_cores > 0) return 3;
  if (has_lost_requests(target)) return 2;
  return target.is_full || target.waiting > 0 ? 1 : 0;
}

TargetSum& sum_for(std::vector<TargetSum>& sums, const std::string& origin) {
  const auto known = std::ranges::find(sums, origin, &TargetSum::origin);
  if (known != sums.end()) return *known;
  return sums.emplace_back(TargetSum{.origin = origin});
}

void add_history(TargetSum& sum, const ConnectTarget& target, Instant now) {
  sum.opened += target.opened;
  sum.failed += target.failed;
  sum.requests_failed += target.requests_failed;
  if (target.last_error) sum.error = target.last_error;
  if (target.request_failed_at != never && now - target.request_failed_at < sum.request_failed) {
    sum.request_failed = now - target.request_failed_at;
    sum.request_error = target.request_error;
  }
  if (target.failing_since == never) return;
  ++sum.failing_cores;
  sum.failing = std::max(sum.failing, now - target.failing_since);
}

/// Returns the targets of all cores by origin, the worst first.
std::vector<TargetSum> targets_of(const RuntimeView& view) {
  std::vector<TargetSum> sums;
  for (const CoreAnswer& core : view.cores) {
    for (const ConnectTarget& each : core.snapshot->targets) {
      add_history(sum_for(sums, each.origin), each, core.snapshot->at);
    }
    for (const TargetUse& each : core.snapshot->uses) {
      TargetSum& sum = sum_for(sums, each.origin);
      sum.open += each.open;
      sum.idle += each.idle;
      sum.waiting += each.waiting;
      sum.is_full |= each.is_full;
    }
  }
  std::ranges::sort(sums, [](const TargetSum& one, const TargetSum& other) {
    const int worse = badness_of(one) - badness_of(other);
    return worse != 0 ? worse > 0 : one.origin < other.origin;
  });
  return sums;
}

Cell state_of(const TargetSum& target) {
  if (target.failing_cores > 0) return Cell("unreachable").with(Tone::bad);
  if (has_lost_requests(target)) return Cell("requests fail").with(Tone::bad);
  if (target.is_full) return Cell("all connections in use").with(Tone::warning);
  return Cell("reachable").with(Tone::good);
}

Cell error_of(const TargetSum& target) {
  if (target.failing_cores == 0 && target.request_error) return target.request_error.message();
  return target.error ? Cell(target.error.message()) : Cell();
}

/// Finds the routes whose requests get no answer, with one line for each.
void find_stuck_requests(const RuntimeView& view, Findings& findings) {
  struct Stuck {
    std::size_t requests = 0;
    Duration longest{};
  };
  std::map<std::string_view, Stuck> by_route;
  for (const PlacedConnection& each : connections_of(view)) {
    if (!is_stuck(*each.report)) continue;
    Stuck& stuck = by_route[each.report->unanswered_route];
    ++stuck.requests;
    stuck.longest = std::max(stuck.longest, *each.report->unanswered);
  }
  for (const auto& [route, stuck] : by_route) {
    const std::string requests = stuck.requests == 1
                                     ? std::string("a request of ")
                                     : std::to_string(stuck.requests) + " requests of ";
    findings.push_back({Tone::warning,
                        requests + std::string(route) + " got no answer for up to " +
                            Cell::time(stuck.longest).to_text(),
                        "tasks", "the page of tasks shows what they wait for"});
  }
}

}  // namespace

Task<Page> connections_page(const RuntimeView& view) {
  TurnBudget budget(*(co_await this_context()).loop);
  Page page{.name = "connections", .title = "Connections"};
  page.note =
      "The oldest connections come first. A core reads its oldest ones, about 100, for at most 80 "
      "microseconds. \"Runs for\" is the time of a request without an answer, if the server has "
      "the observer of the pages. \"Waits\" is the time without a byte. Bytes are those of HTTP, "
      "without TLS.";
  page.sections.push_back(servers_section(view));
  Section table{.key = "connections", .title = "Open connections"};
  table.columns = {{"peer", "peer"},           {"age_seconds", "age"},
                   {"protocol", "protocol"},   {"state", "state"},
                   {"route", "route"},         {"unanswered_seconds", "no answer for"},
                   {"waits_seconds", "waits"}, {"received_bytes", "received"},
                   {"sent_bytes", "sent"},     {"unsent_bytes", "unsent"},
                   {"core", "core"},           {"server", "server"}};
  const std::vector<PlacedConnection> all = connections_of(view);
  std::uint64_t open = 0;
  for (const CoreAnswer& core : view.cores) {
    for (const ServerReport& each : core.snapshot->servers) open += each.open;
  }
  for (std::size_t i = 0; i < std::min(all.size(), rows_max); ++i) {
    table.rows.push_back(row_of(all[i]));
    co_await budget.item();
  }
  table.left_out = open - std::min<std::uint64_t>(open, table.rows.size());
  page.sections.push_back(std::move(table));
  co_return page;
}

Page clients_page(const RuntimeView& view) {
  std::string note =
      "The servers that the HTTP clients of this program connect to. A target is unreachable if "
      "the last connection to it could not be opened. \"Requests fail\" if one has failed in the "
      "last minute, for example because the answer came too late. A status such as 500 is no "
      "failure.";
  Section table{.when_empty = "No client has opened a connection."};
  table.columns = {{"target", "target"},
                   {"state", "state"},
                   {"failing_seconds", "unreachable since"},
                   {"last_error", "last error"},
                   {"open", "open"},
                   {"idle", "of it idle"},
                   {"waiting", "requests that wait"},
                   {"opened", "opened"},
                   {"failed", "not opened"},
                   {"requests_failed", "failed requests"},
                   {"failing_cores", "cores that fail"}};
  for (const TargetSum& each : targets_of(view)) {
    table.rows.push_back(
        {each.origin, state_of(each), each.failing_cores > 0 ? Cell::time(each.failing) : Cell(),
         error_of(each), Cell::number(each.open), Cell::number(each.idle),
         Cell::number(each.waiting).with(each.waiting > 0 ? Tone::warning : Tone::plain),
         Cell::number(each.opened), Cell::number(each.failed), Cell::number(each.requests_failed),
         Cell::number(each.failing_cores)});
  }
  return table_page("clients", "Clients", std::move(note), std::move(table));
}

void find_client_faults(const RuntimeView& view, Findings& findings) {
  for (const TargetSum& each : targets_of(view)) {
    const std::string name = "client target " + each.origin;
    if (each.failing_cores > 0) {
      findings.push_back({Tone::bad,
                          name + " is unreachable since " + Cell::time(each.failing).to_text() +
                              ": " + each.error.message(),
                          "clients", "check that it runs, and that its address is right"});
    } else if (has_lost_requests(each)) {
      findings.push_back({Tone::bad,
                          name + ": a request failed " + Cell::time(each.request_failed).to_text() +
                              " ago: " + each.request_error.message(),
                          "clients", "check if it answers, and how fast"});
    } else if (each.is_full) {
      findings.push_back({Tone::warning,
                          name + ": " + Cell::number(each.waiting).to_text() +
                              " requests wait, because all connections are in use",
                          "clients", "the target is slow, or connections_per_origin_max is low"});
    }
  }
}

void find_connection_faults(const RuntimeView& view, Findings& findings) {
  const double rejected = total_rate(
      view, [](const CoreReport& core) { return metric_of(core, "http connections rejected"); });
  if (rejected > 0) {
    findings.push_back({Tone::bad,
                        "the server refuses " + Cell::rate(rejected).to_text() +
                            " connections a second, because connections_max are open",
                        "connections",
                        "raise connections_max, or see which clients hold the connections"});
  }
  find_stuck_requests(view, findings);
}

}  // namespace weir::admin
