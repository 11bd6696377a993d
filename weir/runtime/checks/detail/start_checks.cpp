#include "weir/runtime/checks/detail/start_checks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/os/detail/machine/limits.hpp"

namespace weir::checks {

StartChecks::StartChecks(loop::PlatformLog& platform, MachineFacts facts)
    : platform_(platform), facts_(std::move(facts)) {}

StartChecks* StartChecks::find(Loop& loop) noexcept {
  return loop.group().slots().find<StartChecks>();
}

void StartChecks::log(const Demands& demands) {
  for (const Finding& each : check_machine(facts_, demands)) {
    if (each.severity == Severity::note) continue;
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(logged_, each.check, &Finding::check) != logged_.end()) continue;
    logged_.push_back(each);
    platform_.log("weir: " + each.to_line());
  }
}

void StartChecks::log_default_connections(std::size_t connections) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(names_connections_, true)) return;
  platform_.log("weir: at most " + std::to_string(connections) +
                " connections (all descriptors except " + std::to_string(descriptors_reserved) +
                " and those of the admin listener)");
}

std::vector<Finding> StartChecks::logged() const {
  const std::lock_guard lock(mutex_);
  return logged_;
}

void StartChecks::log_lack_of_descriptors(std::size_t loops) {
  const std::size_t others = loops - 1;  // loops that still open their listeners
  const std::size_t free = os::free_descriptors(others + 1);
  if (free > others || !facts_.open_files_max) return;
  log({.descriptors_own = *facts_.open_files_max - free + others, .loops = true});
}

}  // namespace weir::checks
