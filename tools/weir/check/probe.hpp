// Checks that the server still serves.
#pragma once

#include <string>

#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// Sends one GET of the target's path on a new connection.
/// Returns: the outcome of the connection.
/// Cancel: ends early, without a response.
Task<Outcome> get_once(const CheckTarget& target);

/// Fills in the baseline of `target`, which is what correct requests get. It asks by HTTP/2 if the
/// server does not answer HTTP/1.1.
/// Returns: empty, or a description of the outcome if the GET got no response. target.get.status
/// is then 0.
/// Cancel: ends early.
Task<std::string> find_baseline(CheckTarget& target);

/// Checks that a GET gets the status of the baseline.
/// Returns: empty if it does, else a description of the outcome.
/// Cancel: ends early with a description.
Task<std::string> probe(const CheckTarget& target);

}  // namespace weir::check
