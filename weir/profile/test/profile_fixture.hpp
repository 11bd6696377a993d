// Profiles of functions that do not exist, for tests of their formats.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/profile/detail/stack_collection.hpp"

namespace weir::profile {

/// Returns a profile with these stacks. `names` has the names of the functions at the addresses;
/// the others are called "f100", with the address.
inline Profile made_profile(const std::vector<std::pair<Stack, std::uint64_t>>& stacks,
                            const std::map<std::uintptr_t, std::string>& names = {}) {
  StackCollection collection;
  for (const auto& [stack, weight] : stacks) {
    std::vector<std::uintptr_t> frames = stack.addresses;
    for (std::size_t index = 1; index < frames.size(); ++index) ++frames[index];
    loop::CpuSample sample;
    sample.core = stack.core;
    sample.thread_name = stack.thread;
    sample.weight = weight;
    sample.activity = stack.activity;
    sample.frames = frames;
    collection.add(sample, stack.route);
  }
  Profile profile;
  profile.stacks = collection.stacks();
  profile.addresses = collection.addresses();
  profile.symbols.code = {{"/bin/service", 0x100, 0x900, 0x40, 0, "ab12"}};
  for (const std::uintptr_t address : profile.addresses) {
    const auto named = names.find(address);
    os::AddressName name;
    name.function = named != names.end() ? named->second : "f" + std::to_string(address);
    name.symbol = "_Z" + name.function;
    name.code = 0;
    profile.symbols.names.push_back(name);
  }
  profile.hertz = 100;
  profile.length = std::chrono::seconds(2);
  return profile;
}

}  // namespace weir::profile
