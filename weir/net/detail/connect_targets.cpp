#include "weir/net/detail/connect_targets.hpp"

#include <algorithm>
#include <new>

#include "weir/loop/detail/named_counters.hpp"

namespace weir {
namespace {

constexpr std::string_view others = "(others)";

constexpr MetricInfo info(std::string_view name, std::string_view help) {
  return {.name = name, .unit = "{connection}", .help = help, .label = "origin"};
}
constexpr detail::NamedCounters::Row rows[]{
    {"client connections opened",
     info("weir.client.connections.opened", "Connections that clients have opened.")},
    {"client connections failed",
     info("weir.client.connections.failed", "Connections that clients could not open.")},
};

/// The totals of a core's targets, which any thread may read. It is a slot of the loop.
struct ConnectCounters {
  explicit ConnectCounters(Loop& loop) noexcept : by_origin(loop, rows) {}
  detail::NamedCounters by_origin;

  static detail::Counter& opened(Loop& loop, std::string_view origin) {
    return loop.slots().get<ConnectCounters>(loop).by_origin.of(origin)[0];
  }
  static detail::Counter& failed(Loop& loop, std::string_view origin) {
    return loop.slots().get<ConnectCounters>(loop).by_origin.of(origin)[1];
  }
};

}  // namespace

void ConnectTargets::on_opened(Loop& loop, std::string_view origin) noexcept {
  try {
    ConnectTarget& target = of(loop).find(origin);
    ++target.opened;
    target.failing_since = never;
    ConnectCounters::opened(loop, origin).add();
  } catch (const std::bad_alloc&) {
    // It is not counted.
  }
}

void ConnectTargets::on_failed(Loop& loop, std::string_view origin,
                               std::error_code error) noexcept {
  if (error == Errc::cancelled) return;
  try {
    ConnectTarget& target = of(loop).find(origin);
    ++target.failed;
    target.last_error = error;
    if (target.failing_since == never) target.failing_since = loop.platform().now();
    ConnectCounters::failed(loop, origin).add();
  } catch (const std::bad_alloc&) {
    // It is not counted.
  }
}

void ConnectTargets::on_request_failed(Loop& loop, std::string_view origin,
                                       std::error_code error) noexcept {
  if (error == Errc::cancelled) return;
  try {
    ConnectTarget& target = of(loop).find(origin);
    ++target.requests_failed;
    target.request_failed_at = loop.platform().now();
    target.request_error = error;
  } catch (const std::bad_alloc&) {
    // It is not counted.
  }
}

ConnectTarget& ConnectTargets::find(std::string_view origin) {
  const auto named = [&](std::string_view name) {
    return std::ranges::find(targets_, name, &ConnectTarget::origin);
  };
  if (const auto known = named(origin); known != targets_.end()) return *known;
  if (targets_.size() < targets_max) return targets_.emplace_back(std::string(origin));
  if (const auto known = named(others); known != targets_.end()) return *known;
  return targets_.emplace_back(std::string(others));
}

}  // namespace weir
