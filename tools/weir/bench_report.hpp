// Reports the result of a load, as text and as JSON.
#pragma once

#include <string>

#include "tools/weir/load.hpp"

namespace weir::bench {

/// Returns a few lines for a terminal.
std::string to_text(const LoadPlan& plan, const LoadResult& result);

/// Returns one JSON object in one line, with times in nanoseconds and rates per second. It
/// contains every count, and the errors under "errors" by name. The histogram of latencies has a
/// pair [largest value, count] for each bucket that is not empty.
std::string to_json(const LoadPlan& plan, const LoadResult& result);

/// Returns true if every request that was due was sent and answered correctly. Requests that were
/// abandoned at the end do not count, unless their connections received nothing in the whole
/// measured time.
bool is_clean(const LoadResult& result) noexcept;

}  // namespace weir::bench
