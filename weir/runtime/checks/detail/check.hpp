// Declarations that the sources of machine_checks.hpp share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weir/runtime/checks/machine_checks.hpp"

namespace weir::checks {

using Findings = std::vector<Finding>;

/// Adds what it finds to the findings. It adds nothing if a fact is unknown or not asked for.
using Check = void (*)(const MachineFacts&, const Demands&, Findings&);

/// Returns the checks of CPUs, threads, memory and time.
std::span<const Check> cpu_checks() noexcept;

/// Returns the number of loops: those asked for, or one for each core within the quota.
std::size_t loops_of(const MachineFacts& facts, const Demands& demands) noexcept;

template <class Number>
std::string to_text(Number number) {
  return std::to_string(number);
}

}  // namespace weir::checks
