// Runs cases that are bytes and a response, and evaluates the response.
#pragma once

#include <string>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// Returns the bytes of the case for this target. They have its paths in the first request line
/// and its authority in the first head.
std::string bytes_for(const Case& test_case, const CheckTarget& target);

/// Runs the case on a new connection.
/// Returns: the verdict.
/// Cancel: ends early with some verdict.
Task<Verdict> check_wire(const CheckTarget& target, const Case& test_case);

/// Returns the verdict on `outcome`.
Verdict evaluate(const CheckTarget& target, const Case& test_case, const Outcome& outcome);

/// Describes in words what the case expects: "a rejection (4xx or 5xx), 1 answer".
std::string describe_expected(const Case& test_case);

/// Returns true if a correct request of that method may get this status.
bool is_accepting_status(const CheckTarget& target, bool is_post, int status);

}  // namespace weir::check
