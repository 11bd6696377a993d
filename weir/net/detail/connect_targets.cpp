#include "weir/net/detail/connect_targets.hpp"

#include <algorithm>
#include <new>

namespace weir {

void ConnectTargets::on_opened(Loop& loop, std::string_view origin) noexcept {
  try {
    ConnectTarget& target = of(loop).find(origin);
    ++target.opened;
    target.failing_since = never;
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
  constexpr std::string_view others = "(others)";
  if (const auto known = named(others); known != targets_.end()) return *known;
  return targets_.emplace_back(std::string(others));
}

}  // namespace weir
