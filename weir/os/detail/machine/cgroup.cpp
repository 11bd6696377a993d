// Finds the files with the limits of the control groups through /proc/self/cgroup and the mounts.
#include "weir/os/detail/machine/cgroup.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/cpu_list.hpp"

namespace weir::os {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

/// Decodes a path of mountinfo, which writes white space and backslashes as \ooo.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && text.size() - i > 3 &&
        std::from_chars(digits, digits + 3, byte, 8).ptr == digits + 3) {
      result += static_cast<char>(byte);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// The mount point of a hierarchy, and the group that is the root of the mount.
struct Mount {
  std::string point;
  std::string group = "/";
};

/// Finds the mount of the version 1 hierarchy with `controller`, or of version 2 if `controller` is
/// empty.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view controller) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const std::string_view kind = dash[1];
    if (controller.empty() ? kind != "cgroup2" : kind != "cgroup") continue;
    const auto options = split(dash[3], ',');
    if (!controller.empty() && std::ranges::find(options, controller) == options.end()) continue;
    return Mount{unescape(fields[4]), unescape(fields[3])};
  }
  return std::nullopt;
}

/// Finds the group of this process in a hierarchy, in lines like `4:cpu,cpuacct:/a/b` and
/// `0::/a/b`.
std::optional<std::string_view> find_group(std::string_view cgroups, std::string_view controller) {
  for (const std::string_view line : split(cgroups, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first == line.npos ? first : first + 1);
    if (second == line.npos) continue;
    const auto names = split(line.substr(first + 1, second - first - 1), ',');
    const bool found = controller.empty() ? names.empty() && line.substr(0, first) == "0"
                                          : std::ranges::find(names, controller) != names.end();
    if (found) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Returns the directories from this process's group up to the topmost visible group.
std::vector<std::string> directories(const Mount& mount, std::string_view group) {
  // A mount of /a shows the group /a/b as /b. A group outside of the mount is the view of another
  // namespace. The mount point then is this process's group or an ancestor.
  if (mount.group != "/") {
    const bool inside = group.starts_with(mount.group) &&
                        (group.size() == mount.group.size() || group[mount.group.size()] == '/');
    group = inside ? group.substr(mount.group.size()) : std::string_view();
  }
  std::vector<std::string> result{mount.point};
  for (const std::string_view name : split(group, '/')) {
    if (name == "..") return {mount.point};
    result.push_back(result.back() + '/' + std::string(name));
  }
  std::ranges::reverse(result);
  return result;
}

class Reader {
 public:
  explicit Reader(const std::string& root) : root_(root) {
    cgroups_ = read_text_file(root + "/proc/self/cgroup").value_or("");
    mountinfo_ = read_text_file(root + "/proc/self/mountinfo").value_or("");
  }

  CgroupLimits read() {
    for (const std::string& group : groups_of("", "/sys/fs/cgroup")) read_quota_v2(group);
    for (const std::string& group : groups_of("cpu", "/sys/fs/cgroup/cpu")) {
      read_quota_v1(group);
      if (!limits_.real_time_us) limits_.real_time_us = read_real_time(group);
    }
    for (const std::string& group : groups_of("", "/sys/fs/cgroup")) {
      read_tasks(group);
      read_memory(group + "/memory.max");
    }
    for (const std::string& group : groups_of("pids", "/sys/fs/cgroup/pids")) read_tasks(group);
    for (const std::string& group : groups_of("memory", "/sys/fs/cgroup/memory")) {
      read_memory(group + "/memory.limit_in_bytes");
    }
    read_cpuset(groups_of("", "/sys/fs/cgroup"), {"cpuset.cpus.effective"});
    read_cpuset(groups_of("cpuset", "/sys/fs/cgroup/cpuset"),
                {"cpuset.effective_cpus", "cpuset.cpus"});
    return std::move(limits_);
  }

 private:
  std::vector<std::string> groups_of(std::string_view controller, const char* usual_point) const {
    const auto group = find_group(cgroups_, controller);
    if (!group) return {};
    const auto mount = find_mount(mountinfo_, controller);
    auto result = directories(mount.value_or(Mount{usual_point}), *group);
    for (std::string& each : result) each.insert(0, root_);
    return result;
  }

  void complain(const std::string& path, std::string_view text) {
    limits_.warnings.push_back(path.substr(root_.size()) + " holds \"" +
                               std::string(text.substr(0, 40)) + "\"");
  }

  void take_quota(std::int64_t quota, std::int64_t period) {
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    limits_.cpu_quota = std::min(limits_.cpu_quota.value_or(cpus), cpus);
  }

  /// Reads a line such as `max 100000` or `150000 100000`, in microseconds.
  void read_quota_v2(const std::string& group) {
    const std::string path = group + "/cpu.max";
    const auto text = read_text_file(path);
    if (!text) return;
    const auto words = split(*text, ' ');
    if (!words.empty() && words[0] == "max") return;
    const auto quota = words.size() == 2 ? read_integer(words[0]) : std::nullopt;
    const auto period = words.size() == 2 ? read_integer(words[1]) : std::nullopt;
    if (!quota || !period || *quota <= 0 || *period <= 0) return complain(path, *text);
    take_quota(*quota, *period);
  }

  /// Reads quota and period from one file each, in microseconds. A quota of -1 means unlimited.
  void read_quota_v1(const std::string& group) {
    const std::string path = group + "/cpu.cfs_quota_us";
    const auto text = read_text_file(path);
    if (!text) return;
    const auto quota = read_integer(*text);
    if (quota && *quota < 0) return;
    const std::string period_path = group + "/cpu.cfs_period_us";
    const auto period_text = read_text_file(period_path).value_or("");
    const auto period = read_integer(period_text);
    if (!quota || *quota == 0) return complain(path, *text);
    if (!period || *period <= 0) return complain(period_path, period_text);
    take_quota(*quota, *period);
  }

  std::optional<std::int64_t> read_real_time(const std::string& group) {
    const std::string path = group + "/cpu.rt_runtime_us";
    const auto text = read_text_file(path);
    if (!text) return std::nullopt;
    const auto runtime = read_integer(*text);
    if (!runtime) complain(path, *text);
    return runtime;
  }

  /// Reads `max` or a number. Returns nullopt if the limit is unlimited, missing or invalid.
  std::optional<std::int64_t> read_limit(const std::string& path) {
    const auto text = read_text_file(path);
    if (!text || *text == "max") return std::nullopt;
    const auto value = read_integer(*text);
    if (value && *value >= 0) return value;
    complain(path, *text);
    return std::nullopt;
  }

  /// Reads the pids files, which have the same names in both versions.
  void read_tasks(const std::string& group) {
    const auto limit = read_limit(group + "/pids.max");
    if (!limit) return;
    const auto present = read_limit(group + "/pids.current").value_or(0);
    const auto left = std::max<std::int64_t>(*limit - present, 0);
    limits_.tasks_left = std::min(limits_.tasks_left.value_or(left), left);
  }

  void read_memory(const std::string& path) {
    constexpr std::int64_t unlimited = std::int64_t{1} << 60;  // version 1 uses about 2^63
    const auto limit = read_limit(path);
    if (!limit || *limit >= unlimited) return;
    limits_.memory_bytes = std::min(limits_.memory_bytes.value_or(*limit), *limit);
  }

  /// Reads the cpuset of the innermost group that has one of `names`. Its effective set already
  /// includes the restrictions of its parents. An empty set means the set of the parent.
  void read_cpuset(const std::vector<std::string>& groups,
                   std::initializer_list<const char*> names) {
    for (const std::string& group : groups) {
      for (const char* name : names) {
        const std::string path = group + '/' + name;
        const auto text = read_text_file(path);
        if (!text || text->empty()) continue;
        const auto cpus = parse_cpu_list(*text);
        if (!cpus) {
          complain(path, *text);
          continue;
        }
        limits_.cpuset = limits_.cpuset ? intersect_cpus(*limits_.cpuset, *cpus) : *cpus;
        return;
      }
    }
  }

  const std::string& root_;
  std::string cgroups_;
  std::string mountinfo_;
  CgroupLimits limits_;
};

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  return Reader(root).read();
}

}  // namespace weir::os
