// The checks of CPUs, threads, memory and time.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "weir/os/detail/machine/proc_files.hpp"
#include "weir/runtime/checks/detail/check.hpp"
#include "weir/runtime/checks/machine_checks.hpp"

namespace weir::checks {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

/// Returns the bytes in MiB, rounded up.
std::string in_mebibytes(std::uint64_t bytes) {
  return to_text(bytes / mebibyte + (bytes % mebibyte == 0 ? 0 : 1)) + " MiB";
}

/// Returns a number of CPUs with at most two decimals.
std::string cpus(double number) {
  const auto hundredths = std::llround(number * 100);
  std::string text = to_text(hundredths / 100);
  if (hundredths % 100 != 0) {
    text += "." + to_text(hundredths % 100 / 10);
    if (hundredths % 10 != 0) text += to_text(hundredths % 10);
  }
  return text + (text == "1" ? " CPU" : " CPUs");
}

void check_cpu_quota(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.cores || !facts.cpu_quota) return;
  const double wanted = *demands.cores;
  if (*facts.cpu_quota >= wanted) return;
  const auto percent = std::llround((1 - *facts.cpu_quota / wanted) * 100);
  findings.push_back(
      {.check = "cpu_quota",
       .severity = Severity::limits,
       .found = "a quota of " + cpus(*facts.cpu_quota) + " (control group)",
       .wanted = to_text(*demands.cores) + " for as many loops",
       .consequence =
           "busy loops stand still " + to_text(percent) + " % of the time, up to 100 ms in a row",
       .remedy = "CPUQuota=" + to_text(*demands.cores * 100) + "% in its unit, docker run --cpus " +
                 to_text(*demands.cores) + ", or fewer cores"});
}

void check_cpuset(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.cores || facts.cpus_allowed == 0 || facts.cpus_allowed >= *demands.cores) return;
  const bool fewer = facts.cpus_allowed < facts.cpus_online;
  findings.push_back({.check = "cpuset",
                      .severity = Severity::limits,
                      .found = cpus(static_cast<double>(facts.cpus_allowed)) + " of " +
                               to_text(facts.cpus_online) + " allowed",
                      .wanted = to_text(*demands.cores) + " for as many loops",
                      .consequence = "several loops share a CPU and wait for each other",
                      .remedy = fewer ? "AllowedCPUs= in its unit, docker run --cpuset-cpus, "
                                        "taskset, or fewer cores"
                                      : "fewer cores"});
}

void check_memory(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.memory_bytes) return;
  const std::uint64_t machine = facts.memory_bytes.value_or(os::unlimited);
  const std::uint64_t group = facts.memory_bytes_max.value_or(os::unlimited);
  if (std::min(machine, group) >= *demands.memory_bytes) return;
  const bool by_group = group <= machine;
  findings.push_back(
      {.check = "memory",
       .severity = Severity::limits,
       .found = in_mebibytes(std::min(machine, group)) +
                (by_group ? " (control group)" : " (the machine)"),
       .wanted = in_mebibytes(*demands.memory_bytes) + " at most, by the limits of the server",
       .consequence = "the kernel kills the process when clients use these limits",
       .remedy = std::string(by_group ? "MemoryMax= in its unit, docker run --memory, or a" : "a") +
                 " lower connections_max or body_max"});
}

void check_address_space(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  // A thread has a stack of 8 MiB and an arena of the allocator, which reserves 64 MiB.
  constexpr std::uint64_t thread_bytes = std::uint64_t{72} << 20;
  constexpr std::uint64_t others = 4;
  if (!demands.loops || !facts.address_bytes_max) return;
  const std::uint64_t wanted =
      thread_bytes * (loops_of(facts, demands) + others) + demands.memory_bytes.value_or(0);
  if (*facts.address_bytes_max >= wanted) return;
  findings.push_back(
      {.check = "address_space",
       .severity = Severity::limits,
       .found = in_mebibytes(*facts.address_bytes_max) + " (RLIMIT_AS or RLIMIT_DATA)",
       .wanted = in_mebibytes(wanted) + " for stacks, arenas and connections",
       .consequence = "threads may not start, and requests may fail for want of memory",
       .remedy = "ulimit -v unlimited -d unlimited, or LimitAS=infinity and LimitDATA=infinity in "
                 "its unit"});
}

void check_tasks(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  // Each loop has a thread. The log, signals and a shared pool of two threads need others.
  constexpr std::uint64_t others = 4;
  if (!demands.loops || !facts.tasks_left) return;
  const std::uint64_t loops = loops_of(facts, demands);
  if (*facts.tasks_left >= loops + others) return;
  const bool fatal = *facts.tasks_left < loops;
  findings.push_back(
      {.check = "tasks",
       .severity = fatal ? Severity::fatal : Severity::limits,
       .found = to_text(*facts.tasks_left) + " more threads allowed (pids.max)",
       .wanted = to_text(loops + others),
       .consequence = fatal ? "loops cannot start" : "blocking calls wait for one another",
       .remedy = "TasksMax=512 in its unit, or docker run --pids-limit 512"});
}

void check_processes(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr std::uint64_t others = 4;
  if (!demands.loops || !facts.processes_max || facts.may_exceed_processes) return;
  const std::uint64_t wanted = loops_of(facts, demands) + others;
  if (*facts.processes_max >= wanted) return;
  findings.push_back(
      {.check = "processes",
       .severity = Severity::limits,
       .found = "at most " + to_text(*facts.processes_max) + " threads of its user (RLIMIT_NPROC)",
       .wanted = to_text(wanted),
       .consequence = "loops or blocking calls get no thread",
       .remedy = "ulimit -u 512, or LimitNPROC=512 in its unit"});
}

void check_real_time(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.real_time_priority) return;
  const auto priority = static_cast<std::uint64_t>(*demands.real_time_priority);
  Finding finding{.check = "real_time", .severity = Severity::limits};
  finding.wanted = "SCHED_FIFO with priority " + to_text(priority);
  finding.consequence = "loops run as ordinary threads";
  if (!facts.may_use_real_time && facts.real_time_priority_max.value_or(priority) < priority) {
    finding.found =
        "priority at most " + to_text(*facts.real_time_priority_max) + " (RLIMIT_RTPRIO)";
    finding.remedy =
        "ulimit -r " + to_text(priority) + ", or LimitRTPRIO=" + to_text(priority) + " in its unit";
  } else if (facts.real_time_us == 0) {
    finding.found = "kernel.sched_rt_runtime_us is 0";
    finding.remedy = "sysctl -w kernel.sched_rt_runtime_us=950000";
  } else if (facts.group_real_time_us == 0) {
    finding.found = "cpu.rt_runtime_us of its control group is 0";
    finding.remedy = "raise it, or use another control group";
  } else {
    return;
  }
  findings.push_back(std::move(finding));
}

void check_locked_memory(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();
  if (!demands.lock_memory || facts.may_lock_memory) return;
  if (facts.locked_bytes_max.value_or(unlimited) == unlimited) return;
  findings.push_back(
      {.check = "locked_memory",
       .severity = Severity::limits,
       .found = "at most " + to_text(*facts.locked_bytes_max) + " bytes (RLIMIT_MEMLOCK)",
       .wanted = "all memory in RAM",
       .consequence = "memory is not locked, and a page fault may stop a loop",
       .remedy = "ulimit -l unlimited, or LimitMEMLOCK=infinity in its unit"});
}

void check_clock_source(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr std::array slow = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
  if (!demands.loops) return;
  for (const std::string_view each : slow) {
    if (facts.clock_source != each) continue;
    const bool has_tsc = (" " + facts.clock_sources + " ").find(" tsc ") != std::string::npos;
    findings.push_back(
        {.check = "clock_source",
         .severity = Severity::limits,
         .found = facts.clock_source,
         .wanted = "tsc, or the clock of the hypervisor",
         .consequence = "each reading of the clock is a slow system call, three per loop turn",
         .remedy = has_tsc ? "echo tsc > "
                             "/sys/devices/system/clocksource/clocksource0/current_clocksource"
                           : "see the kernel's log for the reason why tsc is not used: dmesg | "
                             "grep -i tsc"});
  }
}

void check_interrupts(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr std::uint64_t few = 10'000;  // too few to know how they are spread
  if (!demands.loops || loops_of(facts, demands) < 2) return;
  for (const NetworkInterrupts& each : facts.interrupts) {
    if (each.count < few || each.cpus > 1 || each.steered) continue;
    // A device with one queue can have only one CPU.
    const bool spread = each.queues > 1;
    findings.push_back(
        {.check = "interrupts",
         .severity = spread ? Severity::limits : Severity::note,
         .found = "one CPU handles all interrupts of " + each.device + " (" + to_text(each.queues) +
                  (spread ? " queues)" : " queue)"),
         .wanted = spread ? "one CPU for each queue" : "receive packet steering",
         .consequence = "this CPU limits the network of all loops",
         .remedy = spread ? "systemctl start irqbalance"
                          : "echo f > /sys/class/net/" + each.device + "/queues/rx-0/rps_cpus"});
  }
}

/// Adds what no demand concerns, but may explain a measurement.
void note_machine(const MachineFacts& facts, const Demands&, Findings& findings) {
  const auto note = [&findings](std::string_view check, std::string found, std::string consequence,
                                std::string remedy = {}) {
    findings.push_back({.check = check,
                        .severity = Severity::note,
                        .found = std::move(found),
                        .consequence = std::move(consequence),
                        .remedy = std::move(remedy)});
  };
  if (!facts.container.empty()) {
    note("container", facts.container, "its limits apply, not those of the machine");
  }
  if (facts.cores != 0 && facts.cores < facts.cpus_allowed) {
    note("smt", to_text(facts.cpus_allowed) + " CPUs are " + to_text(facts.cores) + " cores",
         "a loop runs on each core, and hyper-threads stay free");
  }
  if (facts.numa_nodes > 1) {
    note("numa", to_text(facts.numa_nodes) + " nodes", "messages between nodes are slower",
         "numactl --cpunodebind=0 for fewer loops");
  }
  if (facts.huge_pages == "always") {
    note("huge_pages", "transparent_hugepage is always", "memory may grow in steps of 2 MiB",
         "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  }
  if (facts.overcommit == 2) {
    note("overcommit", "vm.overcommit_memory is 2", "thread stacks count as used memory",
         "sysctl -w vm.overcommit_memory=0");
  }
  if (facts.cpu_quota && *facts.cpu_quota < static_cast<double>(facts.cores)) {
    note("quota", "a quota of " + cpus(*facts.cpu_quota), "fewer loops run, and are not pinned");
  }
  for (const std::string& each : facts.warnings) {
    note("control_groups", each, "this limit is ignored");
  }
}

constexpr std::array all = {
    check_cpu_quota,    check_cpuset,     check_memory,    check_address_space,
    check_tasks,        check_processes,  check_real_time, check_locked_memory,
    check_clock_source, check_interrupts, note_machine,
};

}  // namespace

std::size_t loops_of(const MachineFacts& facts, const Demands& demands) noexcept {
  if (demands.cores) return *demands.cores;
  if (!facts.cpu_quota) return facts.cores;
  const auto within_quota = static_cast<std::size_t>(std::max(1.0, std::ceil(*facts.cpu_quota)));
  return std::min(facts.cores, within_quota);
}

std::span<const Check> cpu_checks() noexcept {
  return all;
}

}  // namespace weir::checks
