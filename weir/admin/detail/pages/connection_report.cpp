// The report on the open connections of a core.
#include "weir/admin/detail/pages/core_snapshots.hpp"

#include <algorithm>

#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/h2_connection.hpp"
#include "weir/http/server/detail/request_loop.hpp"
#include "weir/http/server/detail/server_state.hpp"

namespace weir::admin {
namespace {

using http::Call;
using http::Connection;
using http::ServerState;

/// Returns how long an idle connection waits, as far as its deadline tells it.
std::optional<Duration> wait_of(const Connection& connection, Instant now) {
  const ServerState& server = connection.server();
  const bool waits = connection.read_state() == Connection::ReadState::request;
  if (!waits || !connection.was_active() || server.draining()) return std::nullopt;
  const Duration left = connection.read_deadline() - now;
  return std::max(server.limits().idle_timeout - left, Duration::zero());
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

ConnectionReport report_on(Connection& connection, Instant now) {
  ConnectionReport report;
  report.peer = connection.stream().peer_address();
  report.secure = connection.stream().tls() != nullptr;
  report.protocol = connection.is_http2() ? "HTTP/2" : "HTTP/1.1";
  if (connection.io() == nullptr) {
    report.state = connection.was_active() ? "idle" : "new";
    report.waits = wait_of(connection, now);
    return report;
  }
  report.unsent_bytes = connection.io()->output().size();
  if (connection.is_http2()) {
    const std::uint32_t streams = connection.http2().session().streams_open();
    report.state = "active";
    report.route = std::to_string(streams) + (streams == 1 ? " stream" : " streams");
    return report;
  }
  const Call& call = connection.request_loop().call();
  report.state = state_of(call, connection);
  // The route of an answered request may be gone.
  const bool in_progress =
      call.stage() == Call::Stage::running || call.stage() == Call::Stage::routing;
  if (in_progress && call.route() != nullptr) {
    report.route = call.route()->method + " " + std::string(call.route()->pattern.text());
  }
  return report;
}

}  // namespace

std::vector<ServerReport> report_servers(Loop& loop, const ReportLimits& limits) {
  std::vector<ServerReport> reports;
  http::CoreServers* const core = loop.slots().find<http::CoreServers>();
  if (core == nullptr) return reports;
  const Instant begun = loop.platform().now();
  std::size_t left = limits.connections_max;
  for (ServerState* each = core->servers.front(); each != nullptr;
       each = core->servers.next(*each)) {
    ServerState& server = *each;
    ServerReport& report = reports.emplace_back();
    report.open = server.counters().connections_open.value();
    report.websockets = server.counters().websockets_open.value();
    report.requests = server.counters().requests.value();
    report.connections_max = server.limits().connections_max;
    report.draining = server.draining();
    report.connections.reserve(std::min(report.open, left));
    server.connections().visit([&](http::ConnectionNode& node) {
      if (left == 0) return false;
      --left;
      auto& connection = static_cast<Connection&>(node);
      report.connections.push_back(report_on(connection, begun));
      const bool look = report.connections.size() % 8 == 0;
      if (look && loop.platform().now() - begun >= limits.time_max) left = 0;
      return true;
    });
  }
  return reports;
}

}  // namespace weir::admin
