// The pages about open connections, and about the targets of HTTP clients.
#include <algorithm>
#include <string>

#include "weir/admin/detail/pages/runtime_pages.hpp"

namespace weir::admin {
namespace {

struct TargetSum {
  std::string origin;
  std::uint64_t opened = 0;
  std::uint64_t failed = 0;
  std::size_t failing_cores = 0;
  std::size_t cores = 0;
  Duration failing{};  // the longest of all cores
  std::error_code last_error = {};
};

/// Returns the targets of all cores by origin, those that fail first.
std::vector<TargetSum> targets_of(const RuntimeView& view) {
  std::vector<TargetSum> sums;
  for (const CoreAnswer& core : view.cores) {
    for (const ConnectTarget& each : core.snapshot.targets) {
      auto sum = std::ranges::find(sums, each.origin, &TargetSum::origin);
      if (sum == sums.end()) sum = sums.insert(sums.end(), TargetSum{.origin = each.origin});
      sum->opened += each.opened;
      sum->failed += each.failed;
      ++sum->cores;
      if (each.failing_since == never) continue;
      ++sum->failing_cores;
      sum->failing = std::max(sum->failing, core.snapshot.at - each.failing_since);
      sum->last_error = each.last_error;
    }
  }
  std::ranges::sort(sums, std::ranges::greater(), &TargetSum::failing_cores);
  return sums;
}

}  // namespace

Page connections_page(const RuntimeView& view) {
  Page page{.name = "connections", .title = "Connections"};
  page.note =
      "The oldest connections of each core come first. A core shows at most 500, and fewer if its "
      "80 microseconds are over. \"Waits\" is the time without a byte. The age of a connection is "
      "not kept, because it would make each idle connection larger.";
  Section servers{.key = "servers", .title = "Servers", .when_empty = "No server runs."};
  servers.columns = {
      {"core", "core"},         {"server", "server"},         {"open", "open"},
      {"shown", "shown"},       {"websockets", "WebSockets"}, {"limit", "limit of all cores"},
      {"requests", "requests"}, {"draining", "draining"}};
  Section table{.key = "connections", .title = "Open connections"};
  table.columns = {{"core", "core"},           {"server", "server"},      {"peer", "peer"},
                   {"protocol", "protocol"},   {"state", "state"},        {"route", "route"},
                   {"waits_seconds", "waits"}, {"unsent_bytes", "unsent"}};
  for (const CoreAnswer& core : view.cores) {
    for (std::size_t i = 0; i < core.snapshot.servers.size(); ++i) {
      const ServerReport& server = core.snapshot.servers[i];
      servers.rows.push_back({Cell::number(core.core), Cell::number(i), Cell::number(server.open),
                              Cell::number(server.connections.size()),
                              Cell::number(server.websockets),
                              server.connections_max == 0 ? Cell("by descriptors")
                                                          : Cell::number(server.connections_max),
                              Cell::number(server.requests), Cell::flag(server.draining)});
      for (const ConnectionReport& each : server.connections) {
        table.rows.push_back({Cell::number(core.core), Cell::number(i), each.peer.to_string(),
                              std::string(each.protocol) + (each.secure ? " over TLS" : ""),
                              each.state, each.route.empty() ? Cell() : Cell(each.route),
                              each.waits ? Cell::time(*each.waits) : Cell(),
                              Cell::bytes(each.unsent_bytes)});
      }
    }
  }
  page.sections.push_back(std::move(servers));
  page.sections.push_back(std::move(table));
  return page;
}

Page clients_page(const RuntimeView& view) {
  Page page{.name = "clients", .title = "Clients"};
  page.note =
      "The servers that the HTTP clients of this program connect to. A target fails if the last "
      "connection to it could not be opened.";
  Section table{.key = "clients", .title = "", .when_empty = "No client has opened a connection."};
  table.columns = {
      {"target", "target"},        {"state", "state"},   {"failing_seconds", "failing since"},
      {"opened", "opened"},        {"failed", "failed"}, {"failing_cores", "cores that fail"},
      {"last_error", "last error"}};
  for (const TargetSum& each : targets_of(view)) {
    const bool fails = each.failing_cores > 0;
    table.rows.push_back(
        {each.origin, fails ? Cell("fails").with(Tone::bad) : Cell("reachable").with(Tone::good),
         fails ? Cell::time(each.failing) : Cell(), Cell::number(each.opened),
         Cell::number(each.failed), Cell::number(each.failing_cores),
         each.last_error ? Cell(each.last_error.message()) : Cell()});
  }
  page.sections.push_back(std::move(table));
  return page;
}

void find_connection_faults(const RuntimeView& view, std::vector<Finding>& findings) {
  for (const TargetSum& each : targets_of(view)) {
    if (each.failing_cores == 0) continue;
    findings.push_back({Tone::bad,
                        "client target " + each.origin + " fails since " +
                            Cell::time(each.failing).to_text() + ": " + each.last_error.message(),
                        "clients"});
  }
}

}  // namespace weir::admin
