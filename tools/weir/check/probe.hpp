// Whether the server serves.
#pragma once

#include <string>

#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// One GET of the site's path on a connection of its own; how that went.
/// Cancel: ends early, without an answer.
Task<Outcome> ask_once(const Site& site);

/// What right requests get; site.get.status is 0 where nothing came. The reason why then, in words.
/// Cancel: ends early.
Task<std::string> find_baseline(Site& site);

/// Empty when the server answers as it did at first, else what came, in words.
/// Cancel: ends early, with some words.
Task<std::string> probe(const Site& site);

}  // namespace weir::check
