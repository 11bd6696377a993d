#include "tools/simulate/request_monitor.hpp"

#include <algorithm>

#include "weir/base/buffer.hpp"

namespace weir::simulate {
namespace {

// After so many it looks again: what is read too early stays there for many.
constexpr unsigned turns_between = 4;

}  // namespace

std::size_t ahead_max(const http::Limits& limits) noexcept {
  const std::size_t head = std::size_t{limits.head.request_line_max} + limits.head.fields_bytes_max;
  return std::max<std::size_t>(Buffer::default_capacity, 2 * head) +
         static_cast<std::size_t>(limits.linger_bytes_max);
}

RequestWatch::Working::Working(RequestWatch& watch, const Endpoint& client)
    : seen_(watch.seen_[client.to_string()]) {
  ++seen_.begun;
  if (++seen_.worked_on > 1) {
    watch.fault_ = std::to_string(seen_.worked_on) + " requests of " + client.to_string() +
                   " are worked on at once";
  }
}

void RequestWatch::see(http::Router& routes) {
  routes.use([this](http::Request& request, http::Next next) { return work_on(request, next); });
}

Task<http::Response> RequestWatch::work_on(http::Request& request, http::Next next) {
  const Working working(*this, request.peer());
  co_return co_await next(request);
}

std::string RequestWatch::find_fault(WorldHost& server) {
  if (++turns_ % turns_between != 0) return fault_;
  for (const WorldConnection& each : server.connections()) {
    const auto seen = seen_.find(each.peer.to_string());
    const std::size_t begun = seen == seen_.end() ? 0 : seen->second.begun;
    const std::size_t end = end_of_(each.peer, begun);
    if (each.received <= end) continue;
    const auto ahead = static_cast<std::size_t>(each.received - end);
    ahead_most_ = std::max(ahead_most_, ahead);
    if (ahead <= ahead_max_) continue;
    fault_ = std::to_string(ahead) + " bytes were read of " + each.peer.to_string() +
             " beyond its " + std::to_string(begun) + " requests";
  }
  return fault_;
}

}  // namespace weir::simulate
