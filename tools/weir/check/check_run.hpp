// Runs many cases concurrently, and checks after each that the server still serves.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

struct CaseResult {
  const Case* test_case = nullptr;
  Verdict verdict;
};

struct CheckPlan {
  CheckTarget target;  ///< server to check, with its baseline
  std::vector<const Case*> cases;
  std::size_t concurrency = 16;  ///< limit of concurrent cases; slow cases do not count
};

struct CheckReport {
  CheckTarget target;
  std::vector<CaseResult> results;  ///< results in the order of the plan
  Duration elapsed{};

  std::size_t count(VerdictKind kind) const noexcept;
};

/// Runs the cases. The remaining cases count as failed when the server no longer serves.
/// Cancel: ends early; cases without a verdict count as failed.
Task<CheckReport> run_checks(CheckPlan plan);

}  // namespace weir::check
