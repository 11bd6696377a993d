#include "weir/runtime/checks/machine_facts.hpp"

#include <linux/capability.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "weir/os/detail/io/file.hpp"
#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/cgroup.hpp"
#include "weir/os/detail/machine/io_uring.hpp"
#include "weir/os/detail/machine/proc_files.hpp"
#include "weir/os/detail/machine/topology.hpp"

namespace weir::checks {
namespace {

std::string text_of(const std::string& path) {
  return os::read_text_file(path).value_or("");
}

std::optional<std::uint64_t> unsigned_of(std::optional<std::int64_t> value) {
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::vector<os::DirectoryEntry> entries_of(const std::string& folder) {
  constexpr std::size_t entries_max = 4096;
  auto entries = os::list_directory(folder, entries_max);
  return entries ? std::move(*entries) : std::vector<os::DirectoryEntry>();
}

void read_process(MachineFacts& facts, const std::string& root) {
  const auto hard = [&root](std::string_view name) -> std::optional<std::uint64_t> {
    const auto limit = os::read_limit(name, root);
    if (!limit) return std::nullopt;
    return limit->hard;
  };
  // Weir raises these soft limits to the hard limits.
  facts.open_files_max = hard("Max open files");
  facts.locked_bytes_max = hard("Max locked memory");
  facts.real_time_priority_max = hard("Max realtime priority");
  if (const auto limit = os::read_limit("Max processes", root)) facts.processes_max = limit->soft;
  if (const auto limit = os::read_limit("Max file size", root)) facts.file_bytes_max = limit->soft;
  for (const char* const name : {"Max address space", "Max data size"}) {
    const auto limit = os::read_limit(name, root);
    if (limit)
      facts.address_bytes_max =
          std::min(limit->soft, facts.address_bytes_max.value_or(os::unlimited));
  }
  facts.may_bind_any_port = os::has_capability(CAP_NET_BIND_SERVICE, root);
  facts.may_use_real_time = os::has_capability(CAP_SYS_NICE, root);
  facts.may_lock_memory = os::has_capability(CAP_IPC_LOCK, root);
  facts.may_exceed_processes =
      os::has_capability(CAP_SYS_RESOURCE, root) || os::has_capability(CAP_SYS_ADMIN, root);
}

void read_network(MachineFacts& facts, const std::string& root) {
  const std::string net = root + "/proc/sys/net/";
  facts.backlog_max = os::read_number(net + "core/somaxconn");
  facts.syn_backlog_max = os::read_number(net + "ipv4/tcp_max_syn_backlog");
  facts.syn_cookies = os::read_number(net + "ipv4/tcp_syncookies");
  facts.tracked_connections_max = os::read_number(net + "netfilter/nf_conntrack_max");
  facts.tracked_connections = os::read_number(net + "netfilter/nf_conntrack_count");
  facts.privileged_ports_end = os::read_number(net + "ipv4/ip_unprivileged_port_start");
  const auto range = os::read_numbers(net + "ipv4/ip_local_port_range");
  if (range.size() == 2) facts.ports_max = range[1] - range[0] + 1;
  if (!facts.proc_mounted) return;
  const auto disabled = os::read_number(net + "ipv6/conf/all/disable_ipv6");
  facts.ipv6 = disabled.has_value() && *disabled == 0;
}

void read_cpus(MachineFacts& facts, const std::string& root) {
  const os::Topology topology = os::read_topology({.root = root});
  facts.cpus_online = topology.cpus_online;
  facts.cpus_allowed = topology.cpus_allowed;
  facts.cores = topology.physical_cores;
  facts.cpu_quota = topology.cpu_quota;
  for (const os::PhysicalCore& each : topology.cores) {
    facts.numa_nodes = std::max(facts.numa_nodes, static_cast<std::size_t>(each.numa_node) + 1);
  }
  facts.real_time_us = os::read_number(root + "/proc/sys/kernel/sched_rt_runtime_us");
  const std::string clock = root + "/sys/devices/system/clocksource/clocksource0/";
  facts.clock_source = text_of(clock + "current_clocksource");
  facts.clock_sources = text_of(clock + "available_clocksource");
}

/// Reads the first line of /proc/meminfo, "MemTotal:  16303428 kB".
void read_memory(MachineFacts& facts, const std::string& root) {
  constexpr std::string_view name = "MemTotal:";
  const std::string text = text_of(root + "/proc/meminfo");
  const std::size_t begin = text.find_first_not_of(' ', name.size());
  if (!text.starts_with(name) || begin == text.npos) return;
  std::uint64_t kibibytes = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), kibibytes);
  if (kibibytes > 0) facts.memory_bytes = kibibytes << 10;
}

void read_groups(MachineFacts& facts, const std::string& root) {
  os::CgroupLimits groups = os::read_cgroup_limits(root);
  facts.memory_bytes_max = unsigned_of(groups.memory_bytes);
  facts.tasks_left = unsigned_of(groups.tasks_left);
  facts.group_real_time_us = groups.real_time_us;
  facts.warnings = std::move(groups.warnings);
  facts.overcommit = os::read_number(root + "/proc/sys/vm/overcommit_memory");
  // The file marks the chosen one of its words: "always [madvise] never".
  const std::string pages = text_of(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  const auto begin = pages.find('[');
  const auto end = pages.find(']');
  if (begin < end && end != pages.npos) facts.huge_pages = pages.substr(begin + 1, end - begin - 1);
}

std::string container_of(const std::string& root) {
  if (os::path_status(root + "/.dockerenv")) return "Docker";
  if (os::path_status(root + "/run/.containerenv")) return "Podman";
  return text_of(root + "/run/systemd/container");
}

/// Counts of the interrupts by CPU, by the number of the interrupt.
using InterruptCounts = std::map<int, std::vector<std::uint64_t>>;

InterruptCounts read_interrupts(const std::string& root) {
  InterruptCounts counts;
  const std::string text = text_of(root + "/proc/interrupts");
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    int number = 0;
    const auto named = std::from_chars(line.data(), line.data() + line.size(), number);
    if (named.ec != std::errc() || named.ptr == line.data() + line.size() || *named.ptr != ':') {
      continue;
    }
    line.remove_prefix(static_cast<std::size_t>(named.ptr - line.data()) + 1);
    for (;;) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      std::uint64_t count = 0;
      const auto read = std::from_chars(line.data(), line.data() + line.size(), count);
      if (read.ec != std::errc()) break;
      counts[number].push_back(count);
      line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
    }
  }
  return counts;
}

/// Returns true if RPS sends the packets of a queue to any CPU.
bool is_steered(const std::string& device) {
  const auto queues = entries_of(device + "/queues");
  return std::ranges::any_of(queues, [&](const os::DirectoryEntry& queue) {
    const std::string cpus = text_of(device + "/queues/" + queue.name + "/rps_cpus");
    return cpus.find_first_not_of("0,") != cpus.npos;
  });
}

/// Adds the counts of the interrupts of a device, whose numbers are the names in a folder.
NetworkInterrupts sum_interrupts(const std::string& folder, const InterruptCounts& counts) {
  NetworkInterrupts sum;
  std::vector<std::uint64_t> by_cpu;
  for (const auto& entry : entries_of(folder)) {
    int number = 0;
    std::from_chars(entry.name.data(), entry.name.data() + entry.name.size(), number);
    const auto found = counts.find(number);
    if (found == counts.end()) continue;
    std::uint64_t own = 0;
    by_cpu.resize(std::max(by_cpu.size(), found->second.size()));
    for (std::size_t cpu = 0; cpu < found->second.size(); ++cpu) {
      by_cpu[cpu] += found->second[cpu];
      own += found->second[cpu];
    }
    sum.count += own;
    if (own > 0) ++sum.queues;
  }
  sum.cpus = static_cast<std::size_t>(std::ranges::count_if(
      by_cpu, [&](std::uint64_t each) { return each > 0 && each >= sum.count / 100; }));
  return sum;
}

}  // namespace

MachineFacts read_machine_facts(const std::string& root) {
  MachineFacts facts;
  facts.proc_mounted = os::path_status(root + "/proc/self/status").has_value();
  facts.kernel = text_of(root + "/proc/sys/kernel/osrelease");
  facts.container = container_of(root);
  read_process(facts, root);
  read_network(facts, root);
  read_cpus(facts, root);
  read_memory(facts, root);
  read_groups(facts, root);
  return facts;
}

void add_interrupt_facts(MachineFacts& facts, const std::string& root) {
  const InterruptCounts counts = read_interrupts(root);
  const std::string folder = root + "/sys/class/net";
  for (const auto& entry : entries_of(folder)) {
    const std::string device = folder + "/" + entry.name;
    NetworkInterrupts sum = sum_interrupts(device + "/device/msi_irqs", counts);
    // A virtio device is a part of the PCI device that has the interrupts.
    if (sum.count == 0) sum = sum_interrupts(device + "/device/../msi_irqs", counts);
    if (sum.count == 0) continue;
    sum.device = entry.name;
    sum.steered = is_steered(device);
    facts.interrupts.push_back(std::move(sum));
  }
}

void add_io_uring_facts(MachineFacts& facts) {
  if (const auto probed = os::probe_io_uring(); !probed) {
    os::IoUringRefusal refusal = os::explain_io_uring_error(probed.error());
    facts.io_uring_refusal = std::move(refusal.reason);
    facts.io_uring_remedy = std::move(refusal.remedy);
  }
}

}  // namespace weir::checks
