// Limits of this process's control groups (cgroups(7), versions 1 and 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::os {

struct CgroupLimits {
  /// The CPU quota in CPUs; 1.5 means one and a half CPUs. It is the smallest along the path from
  /// this process's group to the topmost visible group, in both versions; nullopt: unlimited.
  std::optional<double> cpu_quota;
  /// The cpuset of this process; nullopt: none.
  std::optional<std::vector<int>> cpuset;
  /// The number of threads and processes that may still be started, the least along the path;
  /// nullopt: unlimited.
  std::optional<std::int64_t> tasks_left;
  /// The memory limit, the least along the path; nullopt: unlimited.
  std::optional<std::int64_t> memory_bytes;
  /// The run time of the group's real-time threads in microseconds per period, usually one second
  /// (version 1). A negative value means unlimited. nullopt means that the kernel does not divide
  /// real time among groups.
  std::optional<std::int64_t> real_time_us;
  /// Texts for the operator about files that were ignored because their content is invalid.
  std::vector<std::string> warnings;
};

/// Reads `root`/proc/self/{cgroup,mountinfo} and the groups that these files name, also below
/// `root`. An empty `root` is the real machine. A missing file limits nothing.
CgroupLimits read_cgroup_limits(const std::string& root);

}  // namespace weir::os
