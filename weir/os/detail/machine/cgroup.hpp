// What the control groups of this process (cgroups(7), versions 1 and 2) allow it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::os {

struct CgroupLimits {
  /// CPU time per time: 1.5 means one and a half CPUs. The smallest along the path from this
  /// process's group up to the topmost visible one, over both versions; nullopt: unlimited.
  std::optional<double> cpu_quota;
  /// The cpuset of this process; nullopt where there is none.
  std::optional<std::vector<int>> cpuset;
  /// How many more threads and processes may be started: the least along the path.
  std::optional<std::int64_t> tasks_left;
  /// Of memory: the least along the path; nullopt: unlimited.
  std::optional<std::int64_t> memory_bytes;
  /// Microseconds of each second or so that its real-time threads may run (version 1, where the
  /// kernel shares real time out to groups; negative: all); nullopt: it does not.
  std::optional<std::int64_t> real_time_us;
  /// Files that were there but made no sense and were left out, for the operator.
  std::vector<std::string> complaints;
};

/// Reads `root`/proc/self/{cgroup,mountinfo} and the groups that they name, which are looked for
/// under `root` too ("" is the real machine). Missing files limit nothing.
CgroupLimits read_cgroup_limits(const std::string& root);

}  // namespace weir::os
