// Lists of CPU numbers in the kernel's text format, such as `0-3,8,10-11`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::os {

/// Parses a list of CPUs or NUMA nodes. An empty text is an empty list.
/// Returns: each number once, ascending; nullopt for a text that is not such a list, a descending
/// range, or a number above 65535.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// Returns the shortest text that parse_cpu_list() parses as `cpus`, which must be ascending.
std::string format_cpu_list(const std::vector<int>& cpus);

/// Returns the CPUs that are in both lists. The lists must be ascending.
std::vector<int> intersect_cpus(const std::vector<int>& left, const std::vector<int>& right);

}  // namespace weir::os
