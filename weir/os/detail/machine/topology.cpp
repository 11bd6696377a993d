// Combines sysfs, affinity and control groups into a list of physical cores.
#include "weir/os/detail/machine/topology.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/machine/cgroup.hpp"
#include "weir/os/detail/machine/cpu_list.hpp"

namespace weir::os {
namespace {

using CpuList = std::vector<int>;

/// Returns the list in a file; nullopt if the file is missing or its list is empty or invalid.
std::optional<CpuList> read_list(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return std::nullopt;
  auto cpus = parse_cpu_list(*text);
  if (cpus && cpus->empty()) return std::nullopt;
  return cpus;
}

std::map<int, int> read_numa_nodes(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  std::map<int, int> node_of;
  for (const int node : read_list(folder + "online").value_or(CpuList{})) {
    const auto cpus = read_list(folder + "node" + std::to_string(node) + "/cpulist");
    for (const int cpu : cpus.value_or(CpuList{})) node_of[cpu] = node;
  }
  return node_of;
}

/// Returns all hyper-threads of the core of `cpu`, including `cpu`.
CpuList read_siblings(const std::string& root, int cpu) {
  const std::string folder =
      root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    const auto siblings = read_list(folder + name);
    if (siblings && std::ranges::binary_search(*siblings, cpu)) return *siblings;
  }
  return {cpu};
}

std::vector<PhysicalCore> find_cores(const std::string& root, const CpuList& allowed) {
  const auto node_of = read_numa_nodes(root);
  std::vector<PhysicalCore> cores;
  std::set<int> taken;
  for (const int cpu : allowed) {
    if (taken.contains(cpu)) continue;
    for (const int sibling : read_siblings(root, cpu)) taken.insert(sibling);
    const auto node = node_of.find(cpu);
    cores.push_back({cpu, node == node_of.end() ? 0 : node->second});
  }
  std::ranges::sort(cores, {},
                    [](const PhysicalCore& each) { return std::pair(each.numa_node, each.cpu); });
  return cores;
}

/// Returns the CPUs of `whole` that are in `part`, or `whole` if none is. An empty intersection
/// means that a list is wrong.
CpuList intersect(const CpuList& whole, const std::optional<CpuList>& part) {
  if (!part) return whole;
  CpuList both = intersect_cpus(whole, *part);
  return both.empty() ? whole : both;
}

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string format_quota(double quota) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), quota, std::chars_format::fixed, 2);
  std::string result(text.data(), end.ptr);
  result.erase(result.find_last_not_of('0') + 1);
  if (result.ends_with('.')) result.pop_back();
  return result == "0" ? "less than 0.01 CPUs" : result + (result == "1" ? " CPU" : " CPUs");
}

std::string explain(const Topology& topology, const std::vector<std::string>& warnings) {
  std::string text = counted(topology.cores.size(), "core") + ": " +
                     std::to_string(topology.physical_cores) + " physical of " +
                     counted(topology.cpus_allowed, "CPU");
  if (topology.cpus_allowed < topology.cpus_online) {
    text += " allowed (" + std::to_string(topology.cpus_online) + " online)";
  }
  if (topology.cpu_quota) {
    text += ", cgroup quota of " + format_quota(*topology.cpu_quota);
    if (topology.cores.size() == topology.physical_cores) text += " (no effect)";
  }
  for (const std::string& complaint : warnings) text += "; ignored: " + complaint;
  return text;
}

}  // namespace

Topology read_topology(const TopologySource& source) {
  const CgroupLimits limits = read_cgroup_limits(source.root);
  CpuList affinity = source.affinity ? *source.affinity : allowed_cpus();
  if (affinity.empty()) affinity = {0};
  const CpuList online =
      read_list(source.root + "/sys/devices/system/cpu/online").value_or(affinity);
  const CpuList allowed = intersect(intersect(affinity, online), limits.cpuset);

  Topology topology;
  topology.cores = find_cores(source.root, allowed);
  topology.cpus_online = online.size();
  topology.cpus_allowed = allowed.size();
  topology.physical_cores = topology.cores.size();
  topology.cpu_quota = limits.cpu_quota;
  if (limits.cpu_quota && *limits.cpu_quota < static_cast<double>(topology.cores.size())) {
    const double most = std::max(1.0, std::ceil(*limits.cpu_quota));
    topology.cores.resize(static_cast<std::size_t>(most));
    topology.limited_by_quota = topology.cores.size() < topology.physical_cores;
  }
  topology.explanation = explain(topology, limits.warnings);
  return topology;
}

}  // namespace weir::os
