#include "weir/profile/detail/stack_collection.hpp"

#include <algorithm>
#include <cassert>

namespace weir::profile {

bool StackCollection::is_wanted(std::string_view route) const noexcept {
  if (only_route_.empty() || route == only_route_) return true;
  const auto pattern = route.find(' ');
  return pattern != route.npos && route.substr(pattern + 1) == only_route_;
}

void StackCollection::add(const loop::CpuSample& sample, std::string_view route) {
  if (!is_wanted(route) || sample.frames.empty()) return;
  Stack stack{.core = sample.core,
              .thread = std::string(sample.thread_name),
              .route = std::string(route),
              .activity = sample.activity};
  stack.addresses.assign(sample.frames.begin(), sample.frames.end());
  // A return address may be the first one of the next function.
  for (std::size_t index = 1; index < stack.addresses.size(); ++index) --stack.addresses[index];
  const std::size_t size = stack.addresses.size();
  const auto known = stacks_.find(stack);
  if (known != stacks_.end()) {
    known->second += sample.weight;
  } else if (size > addresses_max - addresses_) {
    dropped_ += sample.weight;
  } else {
    addresses_ += size;
    stacks_.emplace(std::move(stack), sample.weight);
  }
}

bool StackCollection::free_some() noexcept {
  constexpr unsigned at_once = 64;
  for (unsigned count = 0; count < at_once && !stacks_.empty(); ++count) {
    addresses_ -= stacks_.begin()->first.addresses.size();
    stacks_.erase(stacks_.begin());
  }
  return !stacks_.empty();
}

std::vector<std::uintptr_t> StackCollection::addresses() const {
  std::vector<std::uintptr_t> all;
  for (const auto& [stack, weight] : stacks_) {
    all.insert(all.end(), stack.addresses.begin(), stack.addresses.end());
    if (stack.activity != 0) all.push_back(stack.activity);
  }
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

std::size_t Profile::index_of(std::uintptr_t address) const noexcept {
  const auto found = std::ranges::lower_bound(addresses, address);
  assert(found != addresses.end() && *found == address);
  return static_cast<std::size_t>(found - addresses.begin());
}

std::uint64_t Profile::weight() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& each : stacks) sum += each.second;
  return sum;
}

}  // namespace weir::profile
