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

std::size_t WorldLinks::number_of(const os::Address& address) const {
  const auto found = std::ranges::find(sites_, address.with_port(0), &Site::own);
  return static_cast<std::size_t>(found - sites_.begin());
}

MemoryNetwork* WorldLinks::network_at(const os::Address& address) {
  const std::size_t number = number_of(address);
  return number == sites_.size() ? nullptr : sites_[number].streams;
}

MemoryDatagramNetwork* WorldLinks::datagrams_at(const os::Address& address) {
  const std::size_t number = number_of(address);
  return number == sites_.size() ? nullptr : sites_[number].datagrams;
}

WorldPath& WorldLinks::path(const os::Address& from, const os::Address& to) {
  const std::pair ends(number_of(from), number_of(to));
  assert(std::max(ends.first, ends.second) < sites_.size());
  auto& path = paths_[ends];
  if (path == nullptr) path = std::make_unique<WorldPath>(state_, ends.first == ends.second);
  return *path;
}

}  // namespace weir
