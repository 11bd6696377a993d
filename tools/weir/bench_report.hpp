// What a load came to, for people and for programs.
#pragma once

#include <string>

#include "tools/weir/load.hpp"

namespace weir::bench {

/// Some lines for a terminal.
std::string to_text(const LoadPlan& plan, const LoadResult& result);

/// One JSON object in one line: times in nanoseconds, rates per second. Every count is there, the
/// faults under "errors" by name, and the histogram of latencies: [up to, how many] of each bucket
/// in which there are any.
std::string to_json(const LoadPlan& plan, const LoadResult& result);

/// Whether every request that was due was sent and answered, and rightly; those that were to be
/// abandoned at the end do not count, unless their connections got nothing in all the time.
bool is_clean(const LoadResult& result) noexcept;

}  // namespace weir::bench
