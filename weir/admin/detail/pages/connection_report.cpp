// The report on the open connections of a core.
#include <algorithm>

#include "weir/admin/detail/pages/core_snapshots.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/core_servers.hpp"
#include "weir/http/server/detail/h1/h1_connection.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"

namespace weir::admin {
namespace {

using http::Call;
using http::Connection;
using http::ServerState;

constexpr std::uint32_t routes_shown_max = 3;  // of one connection of HTTP/2
constexpr std::size_t route_length_max = 80;

/// Returns how long an idle connection waits, as far as its deadline tells it.
std::optional<Duration> wait_of(const Connection& connection, Instant now) {
  const ServerState& server = connection.server();
  const bool waits = connection.read_state() == Connection::ReadState::request;
  if (!waits || !connection.was_active() || server.draining()) return std::nullopt;
  const Duration left = connection.read_deadline() - now;
  return std::max(server.limits().idle_timeout - left, Duration::zero());
}

/// Returns true if the call has a route now. That of an answered request may be gone.
bool has_route(const Call& call) {
  return (call.stage() == Call::Stage::running || call.stage() == Call::Stage::routing) &&
         call.route() != nullptr;
}

std::string route_of(const Call& call) {
  const std::string name = call.route()->method + " " + std::string(call.route()->pattern.text());
  return name.size() <= route_length_max ? name : name.substr(0, route_length_max) + "...";
}

std::string_view state_of(const Call& call, const Connection& connection) {
  if (connection.io()->writing()) return "writes";
  if (connection.read_state() == Connection::ReadState::head) return "reads head";
  if (connection.read_state() == Connection::ReadState::body) return "reads body";
  switch (call.stage()) {
    case Call::Stage::routing:
      return "waits for handler";
    case Call::Stage::running:
      return "runs handler";
    default:
      return "answers";
  }
}

/// Adds a request that its handler has not answered, if it takes the longest.
void add_unanswered(ConnectionReport& report, const Call& call, Instant now) {
  const auto since = call.unanswered_since();
  if (!since || now - *since <= report.unanswered.value_or(Duration::zero())) return;
  report.unanswered = now - *since;
  report.unanswered_route = route_of(call);
}

/// Adds the streams of HTTP/2, and the routes of the oldest ones.
void add_streams(ConnectionReport& report, const Connection& connection, Instant now) {
  report.streams = connection.http2().session().streams_open();
  report.state = report.streams == 0 ? "idle" : "active";
  std::uint32_t shown = 0;
  std::uint32_t seen = 0;
  connection.http2().visit([&](const http::H2Carrier& exchange) {
    const Call& call = exchange.call();
    if (has_route(call)) {
      report.route += (shown == 0 ? "" : ", ") + route_of(call);
      if (exchange.remote_ended()) add_unanswered(report, call, now);
      ++shown;
    }
    return shown < routes_shown_max && ++seen < 2 * routes_shown_max;
  });
  if (shown == 0 || report.streams <= shown) return;
  report.route += ", " + std::to_string(report.streams - shown) + " more";
}

ConnectionReport report_on(Connection& connection, Instant now) {
  ConnectionReport report;
  report.peer = connection.stream().peer_address();
  report.secure = connection.stream().tls() != nullptr;
  report.protocol = connection.is_http2() ? "HTTP/2" : "HTTP/1.1";
  report.age = connection.totals().age(now);
  report.received = connection.totals().received();
  report.sent = connection.totals().sent();
  if (connection.io() == nullptr) {
    report.state = connection.was_active() ? "idle" : "new";
    report.waits = wait_of(connection, now);
    return report;
  }
  report.unsent_bytes = connection.io()->output().size();
  if (connection.is_http2()) {
    add_streams(report, connection, now);
    return report;
  }
  const Call& call = connection.http1().call();
  report.state = state_of(call, connection);
  if (has_route(call)) {
    report.route = route_of(call);
    const bool reads_body = connection.read_state() == Connection::ReadState::body;
    if (!reads_body) add_unanswered(report, call, now);
  }
  return report;
}

ServerReport report_on(ServerState& server) {
  ServerReport report;
  report.open = server.counters().connections_open.value();
  report.websockets = server.counters().websockets_open.value();
  report.requests = server.counters().requests.value();
  report.connections_max = server.limits().connections_max;
  report.draining = server.draining();
  return report;
}

}  // namespace

std::vector<ServerReport> report_servers(Loop& loop, SnapshotBudget& budget) {
  std::vector<ServerReport> reports;
  const auto* const core = loop.slots().find<http::CoreServers>();
  if (core == nullptr) return reports;
  const Instant now = loop.platform().now();
  for (ServerState* each = core->servers.front(); each != nullptr && budget.take();
       each = core->servers.next(*each)) {
    reports.push_back(report_on(*each));
  }
  ServerState* server = core->servers.front();
  for (std::size_t i = 0; i < reports.size(); ++i, server = core->servers.next(*server)) {
    // A server with many connections leaves time for the others.
    budget.begin_part(reports.size() - i);
    std::vector<ConnectionReport>& connections = reports[i].connections;
    connections.reserve(std::min<std::size_t>(reports[i].open, 64));
    server->connections().visit([&](http::ConnectionNode& node) {
      if (!budget.take()) return false;
      connections.push_back(report_on(static_cast<Connection&>(node), now));
      return true;
    });
  }
  return reports;
}

}  // namespace weir::admin
