// Counts the requests in progress and the bytes read beyond them.
#include "tools/simulate/request_monitor.hpp"

#include <algorithm>

#include "weir/base/buffer.hpp"

namespace weir::simulate {
namespace {

// Turns between two checks. Bytes that are read too early stay for many turns.
constexpr unsigned turns_between = 4;

}  // namespace

std::size_t read_ahead_max(const http::Limits& limits) noexcept {
  const std::size_t head =
      std::size_t{limits.head.request_line_max} + limits.head.headers_bytes_max;
  return std::max<std::size_t>(Buffer::default_capacity, 2 * head) +
         static_cast<std::size_t>(std::max(limits.linger_bytes_max, limits.rejected_body_max)) + 1;
}

RequestMonitor::ActiveRequest::ActiveRequest(RequestMonitor& watch, const Endpoint& client)
    : clients_(watch.clients_[client.to_string()]) {
  ++clients_.begun;
  if (++clients_.active > 1) {
    watch.violation_ = std::to_string(clients_.active) + " requests of " + client.to_string() +
                       " are processed at the same time";
  }
}

void RequestMonitor::see(http::Router& routes) {
  routes.use([this](http::Request& request, http::Next next) { return work_on(request, next); });
}

Task<http::Response> RequestMonitor::work_on(http::Request& request, http::Next next) {
  const ActiveRequest working(*this, request.peer_address());
  co_return co_await next(request);
}

std::string RequestMonitor::find_violation(sim::Host& server) {
  if (++turns_ % turns_between != 0) return violation_;
  for (const sim::ConnectionInfo& each : server.connections()) {
    const auto seen = clients_.find(each.peer.to_string());
    const std::size_t begun = seen == clients_.end() ? 0 : seen->second.begun;
    const std::size_t end = end_of_(each.peer, begun);
    if (each.received <= end) continue;
    const auto ahead = static_cast<std::size_t>(each.received - end);
    read_ahead_max_seen_ = std::max(read_ahead_max_seen_, ahead);
    if (ahead <= read_ahead_max_) continue;
    violation_ = std::to_string(ahead) + " bytes were read from " + each.peer.to_string() +
                 " beyond its " + std::to_string(begun) + " requests";
  }
  return violation_;
}

}  // namespace weir::simulate
