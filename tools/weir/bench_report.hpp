// What a load came to, for people and for programs.
#pragma once

#include <string>

#include "tools/weir/load.hpp"

namespace weir::bench {

/// Some lines for a terminal.
std::string to_text(const LoadPlan& plan, const LoadResult& result);

/// One JSON object in one line: times in nanoseconds, rates per second. Every count is there, the
/// faults under "errors" by name.
std::string to_json(const LoadPlan& plan, const LoadResult& result);

/// Whether every request that was due was sent and answered, and rightly; those that were to be
/// abandoned at the end do not count.
bool is_clean(const LoadResult& result) noexcept;

}  // namespace weir::bench
