// Topology: the physical cores on which this process should run a loop, within its quota.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weir::os {

/// A physical core. `cpu` is the lowest-numbered of its hyper-threads that this process may use.
struct PhysicalCore {
  int cpu = 0;
  int numa_node = 0;
};

struct Topology {
  /// The cores that run one loop each; never empty, ascending by (numa_node, cpu).
  std::vector<PhysicalCore> cores;
  std::size_t cpus_online = 1;      ///< online CPUs of the whole machine
  std::size_t cpus_allowed = 1;     ///< online CPUs in the affinity mask and the cpuset
  std::size_t physical_cores = 1;   ///< cores of the allowed CPUs, before the quota applies
  std::optional<double> cpu_quota;  ///< the quota of the control groups in CPUs
  /// True if the quota excluded cores that this process may use. Threads must then not be pinned,
  /// because all containers of this machine with a quota would select the same cores.
  bool limited_by_quota = false;
  /// One line for the operator, such as
  /// "2 cores: 4 physical of 8 CPUs, cgroup quota of 1.5 CPUs".
  std::string explanation;
};

/// The source of read_topology(). The defaults are this machine and the calling thread.
struct TopologySource {
  std::string root;  ///< a prefix of /proc and /sys
  /// Ascending CPU numbers; nullopt: the affinity mask of the calling thread.
  std::optional<std::vector<int>> affinity = std::nullopt;
};

/// Selects physical cores, without further hyper-threads, among the online CPUs that the affinity
/// mask and the cpuset allow. It then keeps at most ceil(quota) cores, and at least one. The quota
/// is rounded up so that the process can use the whole quota; the kernel throttles the excess. The
/// cores that are kept are close together, because cores of the first NUMA node come first.
///
/// A missing or unreadable file limits nothing. A CPU without topology counts as a core.
Topology read_topology(const TopologySource& source = {});

}  // namespace weir::os
