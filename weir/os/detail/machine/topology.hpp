// Which cores this process should run a loop on: physical ones that it may use, within its quota.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weir::os {

/// One physical core, by the CPU of it to run on: the lowest-numbered hyper-thread allowed here.
struct Core {
  int cpu = 0;
  int numa_node = 0;
};

struct Topology {
  /// Where to run one loop each; never empty, ascending by (numa_node, cpu).
  std::vector<Core> cores;
  std::size_t cpus_online = 1;      ///< of the whole machine
  std::size_t cpus_allowed = 1;     ///< of those, allowed by the affinity mask and the cpuset
  std::size_t physical_cores = 1;   ///< that the allowed CPUs belong to; a quota may leave fewer
  std::optional<double> cpu_quota;  ///< in CPUs, where a cgroup sets one
  /// The quota left out cores that this process may run on. Do not pin to those kept then: every
  /// container of this machine with a quota would keep the same ones.
  bool cut_by_quota = false;
  /// For the operator, one line:
  /// "2 cores: 4 physical of 8 CPUs, cgroup quota of 1.5 CPUs".
  std::string explanation;
};

/// Where read_topology() looks. The defaults are this machine and this thread.
struct TopologySource {
  std::string root;  ///< put before /proc and /sys
  /// Ascending CPU numbers; nullopt: the affinity mask of the calling thread.
  std::optional<std::vector<int>> affinity = std::nullopt;
};

/// Counts physical cores (hyper-threads left out) among the CPUs that are online and allowed by the
/// affinity mask and the cpuset, then keeps at most ceil(quota) of them, at least one. Rounding up
/// lets a quota of 1.5 be used up; what runs into it is throttled by the kernel. What a quota
/// keeps is close together: cores of the same NUMA node first.
/// Whatever is missing or unreadable limits nothing; a CPU without topology counts as a core.
Topology read_topology(const TopologySource& source = {});

}  // namespace weir::os
