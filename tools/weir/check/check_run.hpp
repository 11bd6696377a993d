// Playing many cases at once, each followed by a look whether the server still serves.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

struct CaseResult {
  const Case* of = nullptr;
  Verdict verdict;
};

struct CheckPlan {
  Site site;  ///< with its baseline
  std::vector<const Case*> cases;
  std::size_t at_once = 16;  ///< of the cases that are not slow: those all run at once
};

struct CheckReport {
  Site site;
  std::vector<CaseResult> results;  ///< in the order of the plan
  Duration took{};

  std::size_t count(VerdictKind kind) const noexcept;
};

/// Plays the cases. When the server has stopped serving, what is left counts as failed.
/// Cancel: ends early, with some verdicts.
Task<CheckReport> run_checks(CheckPlan plan);

}  // namespace weir::check
