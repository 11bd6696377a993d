#include "weir/loop/restart_policy.hpp"

#include <algorithm>

namespace weir {

std::optional<Instant> Restarts::ended(Instant now) noexcept {
  if (now - began_ >= policy_.stable_after) in_a_row_ = 0;
  if (in_a_row_ == policy_.in_a_row_max) return std::nullopt;
  const bool first = in_a_row_++ == 0;
  pause_ = first ? policy_.pause_first : std::min(pause_ * 2, policy_.pause_max);
  return after(now, pause_);
}

}  // namespace weir
