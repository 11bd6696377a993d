// MachineFacts: what a machine and the limits of a process are, as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::checks {

/// The interrupts of one network device.
struct NetworkInterrupts {
  std::string device;      ///< "eth0"
  std::size_t queues = 0;  ///< interrupts of the device that have happened
  std::size_t cpus = 0;    ///< CPUs that handled at least a hundredth of them
  std::uint64_t count = 0;
  bool steered = false;  ///< receive packet steering (RPS) spreads packets over CPUs
};

/// MachineFacts are plain values that describe a machine and the limits of a process. A value that
/// is nullopt is unknown, and no check uses it. Limits are those that the process can reach; a
/// limit that is unlimited is the largest number.
struct MachineFacts {
  std::string kernel = {};     ///< "6.1.0-28-amd64"
  std::string container = {};  ///< "Docker"; empty: none is known
  bool proc_mounted = true;
  std::vector<std::string> warnings = {};  ///< files of control groups that are malformed

  // The process.
  std::optional<std::uint64_t> open_files_max = {};  ///< RLIMIT_NOFILE
  std::optional<std::uint64_t> locked_bytes_max = {};
  std::optional<std::uint64_t> real_time_priority_max = {};
  std::optional<std::uint64_t> processes_max = {};      ///< RLIMIT_NPROC of the user
  std::optional<std::uint64_t> file_bytes_max = {};     ///< RLIMIT_FSIZE
  std::optional<std::uint64_t> address_bytes_max = {};  ///< the lower of RLIMIT_AS and RLIMIT_DATA
  bool may_bind_any_port = false;                       ///< CAP_NET_BIND_SERVICE
  bool may_use_real_time = false;                       ///< CAP_SYS_NICE
  bool may_lock_memory = false;                         ///< CAP_IPC_LOCK
  bool may_exceed_processes = false;                    ///< CAP_SYS_RESOURCE or CAP_SYS_ADMIN

  // The backend. Both texts are empty if io_uring works or is not known.
  std::string io_uring_refusal = {};
  std::string io_uring_remedy = {};

  // The network.
  std::optional<std::int64_t> backlog_max = {};           ///< net.core.somaxconn
  std::optional<std::int64_t> syn_backlog_max = {};       ///< net.ipv4.tcp_max_syn_backlog
  std::optional<std::int64_t> syn_cookies = {};           ///< net.ipv4.tcp_syncookies
  std::optional<std::int64_t> ports_max = {};             ///< ports of net.ipv4.ip_local_port_range
  std::optional<std::int64_t> privileged_ports_end = {};  ///< net.ipv4.ip_unprivileged_port_start
  std::optional<std::int64_t> tracked_connections_max = {};  ///< net.netfilter.nf_conntrack_max
  std::optional<std::int64_t> tracked_connections = {};      ///< nf_conntrack_count: those now
  std::optional<bool> ipv6 = {};  ///< false: the kernel has no IPv6, or it is disabled
  std::vector<NetworkInterrupts> interrupts = {};

  // CPUs and time.
  std::size_t cpus_online = 0;   ///< 0: unknown, as in the next two
  std::size_t cpus_allowed = 0;  ///< by the affinity mask and the cpuset
  std::size_t cores = 0;         ///< physical cores among those
  std::size_t numa_nodes = 1;
  std::optional<double> cpu_quota = {};           ///< of the control groups, in CPUs
  std::optional<std::int64_t> real_time_us = {};  ///< kernel.sched_rt_runtime_us; -1: no limit
  std::optional<std::int64_t> group_real_time_us = {};  ///< of the control group
  std::string clock_source = {};                        ///< "tsc"
  std::string clock_sources = {};                       ///< all, separated by blanks

  // Memory and tasks.
  std::optional<std::uint64_t> memory_bytes = {};      ///< of the machine
  std::optional<std::uint64_t> memory_bytes_max = {};  ///< of the control groups
  std::optional<std::uint64_t> tasks_left = {};
  std::optional<std::int64_t> overcommit = {};  ///< vm.overcommit_memory
  std::string huge_pages = {};  ///< "madvise", the chosen value of transparent_hugepage
};

/// Reads the facts from small files below `root`, a prefix of /proc, /sys and /etc; about a
/// millisecond. A missing file is an unknown value. It leaves out the interrupts and io_uring.
MachineFacts read_machine_facts(const std::string& root = {});

/// Adds the interrupts of the network devices, from files below `root`.
void add_interrupt_facts(MachineFacts& facts, const std::string& root = {});

/// Adds the reason for which this process may not use io_uring, if that is so.
void add_io_uring_facts(MachineFacts& facts);

}  // namespace weir::checks
