// Sets of CPU numbers as the kernel writes them: `0-3,8,10-11`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::os {

/// Reads a list of CPUs (or NUMA nodes): ascending, each once. nullopt for text that is no such
/// list, a range that runs backwards, or numbers from 65536 on. The empty text is the empty list.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// The shortest text that parse_cpu_list() reads as `cpus`, which must be ascending.
std::string print_cpu_list(const std::vector<int>& cpus);

/// The CPUs in both, which must be ascending.
std::vector<int> common_cpus(const std::vector<int>& left, const std::vector<int>& right);

}  // namespace weir::os
