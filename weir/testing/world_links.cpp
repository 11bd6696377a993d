#include "weir/testing/world_links.hpp"

#include <algorithm>
#include <cassert>

namespace weir {

Duration WorldPath::delay() {
  const WorldVariation& variation = state_.variation;
  if (inside_) return state_.draw.between({}, variation.delay_min);
  const bool slow = state_.draw.happens(variation.slow_parcel);
  const Duration most = slow ? variation.slow_parcel_max : variation.delay_max;
  return extra_delay_ + state_.draw.between(variation.delay_min, most);
}

std::size_t WorldPath::parcel(std::size_t most) {
  if (most == 1 || !state_.draw.happens(state_.variation.split)) return most;
  return 1 + state_.draw.below(most);
}

MemoryNetwork* WorldLinks::network_at(const os::Address& address) {
  const auto found = std::ranges::find_if(networks_, [&](const MemoryNetwork* each) {
    return each->own_address() == address.with_port(0);
  });
  return found == networks_.end() ? nullptr : *found;
}

std::size_t WorldLinks::number_of(const MemoryNetwork& network) const {
  const auto found = std::ranges::find(networks_, &network);
  assert(found != networks_.end());
  return static_cast<std::size_t>(found - networks_.begin());
}

WorldPath& WorldLinks::path(const MemoryNetwork& from, const MemoryNetwork& to) {
  auto& path = paths_[{number_of(from), number_of(to)}];
  if (path == nullptr) path = std::make_unique<WorldPath>(state_, &from == &to);
  return *path;
}

}  // namespace weir
