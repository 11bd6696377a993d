// Cases that are bytes and an answer: sending them, and judging what comes.
#pragma once

#include <string>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// The case's bytes for this site: its paths in the first request line, its name in the first head.
std::string bytes_for(const Case& of, const Site& site);

/// Plays the case on a connection of its own.
/// Cancel: ends early, with some verdict.
Task<Verdict> check_wire(const Site& site, const Case& of);

/// What `outcome` is worth.
Verdict judge(const Site& site, const Case& of, const Outcome& outcome);

/// What is expected, in words: "a refusal (4xx or 5xx), 1 answer".
std::string describe_expected(const Case& of);

/// Whether a request of that method gets this status when nothing is wrong with it.
bool is_accepting(const Site& site, bool posts, int status);

}  // namespace weir::check
