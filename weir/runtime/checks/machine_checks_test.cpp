// Tests of the checks of a machine, with one row for each fault.
#include "weir/runtime/checks/machine_checks.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace weir::checks::machine_checks_test {
namespace {

/// Returns the facts of a machine that takes nothing from any service.
MachineFacts well() {
  MachineFacts facts;
  facts.kernel = "6.1.0-28-amd64";
  facts.open_files_max = 1'048'576;
  facts.locked_bytes_max = std::uint64_t{8} << 20;
  facts.real_time_priority_max = 0;
  facts.processes_max = 96'365;
  facts.file_bytes_max = std::uint64_t(-1);
  facts.address_bytes_max = std::uint64_t(-1);
  facts.memory_bytes = std::uint64_t{2} << 40;
  facts.tracked_connections_max = 262'144;
  facts.tracked_connections = 70;
  facts.backlog_max = 4096;
  facts.syn_backlog_max = 128;
  facts.syn_cookies = 1;
  facts.ports_max = 28'232;
  facts.privileged_ports_end = 1024;
  facts.ipv6 = true;
  facts.interrupts = {{.device = "eth0", .queues = 1, .cpus = 1, .count = 50}};
  facts.cpus_online = 4;
  facts.cpus_allowed = 4;
  facts.cores = 4;
  facts.real_time_us = 950'000;
  facts.clock_source = "tsc";
  facts.clock_sources = "tsc hpet acpi_pm";
  facts.huge_pages = "madvise";
  facts.overcommit = 0;
  return facts;
}

/// A machine with one fault, a demand that it does not meet, and the line that says so.
struct Row {
  std::function<void(MachineFacts&)> fault;
  std::function<void(Demands&)> demand;
  Severity severity;
  const char* line;
};

void ask_nothing(Demands&) {}
void ask_two_cores(Demands& demands) {
  demands.cores = 2;
}
void ask_real_time(Demands& demands) {
  demands.real_time_priority = 50;
}

std::vector<Row> rows_of_the_process() {
  return {
      {[](auto& facts) { facts.open_files_max = 19; }, ask_nothing, Severity::fatal,
       "descriptors: at most 19 open files (RLIMIT_NOFILE), wanted 83 for 64 connections: "
       "the server listens, but answers no client (ulimit -n 1024, or LimitNOFILE=1024 in its "
       "unit)"},
      {[](auto& facts) { facts.open_files_max = 64; }, ask_nothing, Severity::limits,
       "descriptors: at most 64 open files (RLIMIT_NOFILE), wanted 128 for 64 connections: at most "
       "1 connections; other clients wait (ulimit -n 1024, or LimitNOFILE=1024 in its unit)"},
      {[](auto& facts) { facts.open_files_max = 1024; },
       [](auto& demands) { demands.connections_max = 20'000; }, Severity::limits,
       "descriptors: at most 1024 open files (RLIMIT_NOFILE), wanted 20019 for 20000 "
       "connections: at most 1005 connections; other clients wait (ulimit -n 20019, or "
       "LimitNOFILE=20019 in its unit)"},
      {[](auto& facts) { facts.io_uring_refusal = "kernel.io_uring_disabled is 2"; }, ask_nothing,
       Severity::limits,
       "io_uring: kernel.io_uring_disabled is 2, wanted io_uring: epoll is used, with more system "
       "calls per request"},
      {[](auto& facts) { facts.io_uring_refusal = "Linux 5.10 is too old"; },
       [](auto& demands) { demands.backend = BackendChoice::uring; }, Severity::fatal,
       "io_uring: Linux 5.10 is too old, wanted io_uring: loops cannot be created"},
      {[](auto& facts) { facts.file_bytes_max = 0; },
       [](auto& demands) { demands.writes_files = true; }, Severity::limits,
       "file_size: files of at most 0 bytes (RLIMIT_FSIZE), wanted no limit: logs and uploads end "
       "there (ulimit -f unlimited, or LimitFSIZE=infinity in its unit)"},
      {[](auto& facts) { facts.proc_mounted = false; }, ask_nothing, Severity::limits,
       "proc: /proc is not mounted, wanted /proc: limits of the container are unknown, so they are "
       "exceeded (mount -t proc proc /proc)"},
      {[](auto& facts) { facts.processes_max = 5; }, ask_two_cores, Severity::limits,
       "processes: at most 5 threads of its user (RLIMIT_NPROC), wanted 6: loops or blocking calls "
       "get no thread (ulimit -u 512, or LimitNPROC=512 in its unit)"},
      {[](auto& facts) { facts.tasks_left = 5; }, ask_two_cores, Severity::limits,
       "tasks: 5 more threads allowed (pids.max), wanted 6: blocking calls wait for one another "
       "(TasksMax=512 in its unit, or docker run --pids-limit 512)"},
      {[](auto& facts) { facts.tasks_left = 1; }, ask_two_cores, Severity::fatal,
       "tasks: 1 more threads allowed (pids.max), wanted 6: loops cannot start (TasksMax=512 in "
       "its unit, or docker run --pids-limit 512)"},
  };
}

std::vector<Row> rows_of_the_network() {
  return {
      {[](auto& facts) { facts.backlog_max = 128; }, ask_nothing, Severity::limits,
       "backlog: net.core.somaxconn is 128, wanted 4096: the kernel drops connections of a burst "
       "of more than 128 clients (sysctl -w net.core.somaxconn=4096)"},
      {[](auto& facts) { facts.syn_backlog_max = 64; }, ask_nothing, Severity::limits,
       "syn_backlog: net.ipv4.tcp_max_syn_backlog is 64, wanted 128: more handshakes at the same "
       "time are dropped or lose options (sysctl -w net.ipv4.tcp_max_syn_backlog=1024)"},
      {[](auto& facts) { facts.syn_cookies = 0; }, ask_nothing, Severity::limits,
       "syn_cookies: net.ipv4.tcp_syncookies is 0, wanted 1: a flood of false handshakes keeps "
       "clients away (sysctl -w net.ipv4.tcp_syncookies=1)"},
      {[](auto& facts) { facts.ports_max = 100; },
       [](auto& demands) { demands.outgoing_connections = 1000; }, Severity::limits,
       "ports: 100 ports (net.ipv4.ip_local_port_range), wanted 1000 connections to one address: "
       "further connections fail with EADDRNOTAVAIL (sysctl -w "
       "net.ipv4.ip_local_port_range=\"1024 65535\")"},
      {[](auto& facts) { facts.tracked_connections_max = 5000; },
       [](auto& demands) { demands.connections_max = 20'000; }, Severity::limits,
       "tracked_connections: a firewall that tracks 70 of at most 5000 connections "
       "(net.netfilter.nf_conntrack_max), wanted 20000 of clients: the kernel drops packets of "
       "further connections (sysctl -w net.netfilter.nf_conntrack_max=65536)"},
      {[](auto& facts) { facts.tracked_connections = 250'000; }, ask_nothing, Severity::limits,
       "tracked_connections: a firewall that tracks 250000 of at most 262144 connections "
       "(net.netfilter.nf_conntrack_max), wanted 1 more: the kernel drops packets of further "
       "connections (sysctl -w net.netfilter.nf_conntrack_max=524288)"},
      {[](auto& facts) { facts.may_bind_any_port = false; },
       [](auto& demands) { demands.endpoints = {Endpoint::any(80)}; }, Severity::fatal,
       "privileged_port: ports below 1024 need CAP_NET_BIND_SERVICE, wanted [::]:80: the service "
       "cannot listen there (AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit, or sysctl -w "
       "net.ipv4.ip_unprivileged_port_start=80)"},
      {[](auto& facts) { facts.ipv6 = false; },
       [](auto& demands) { demands.endpoints = {Endpoint::parse("[::1]:8080").value()}; },
       Severity::fatal,
       "ipv6: IPv6 is disabled, wanted [::1]:8080: the service cannot listen there (sysctl -w "
       "net.ipv6.conf.all.disable_ipv6=0, or an IPv4 address)"},
  };
}

std::vector<Row> rows_of_cpus() {
  return {
      {[](auto& facts) { facts.cpu_quota = 0.5; }, ask_two_cores, Severity::limits,
       "cpu_quota: a quota of 0.5 CPUs (control group), wanted 2 for as many loops: busy loops "
       "stand still 75 % of the time, up to 100 ms in a row (CPUQuota=200% in its unit, docker run "
       "--cpus 2, or fewer cores)"},
      {[](auto& facts) { facts.cpus_allowed = facts.cores = 1; }, ask_two_cores, Severity::limits,
       "cpuset: 1 CPU of 4 allowed, wanted 2 for as many loops: several loops share a CPU and wait "
       "for each other (AllowedCPUs= in its unit, docker run --cpuset-cpus, taskset, or fewer "
       "cores)"},
      {[](auto& facts) { facts.cpus_allowed = 4; }, [](auto& demands) { demands.cores = 8; },
       Severity::limits,
       "cpuset: 4 CPUs of 4 allowed, wanted 8 for as many loops: several loops share a CPU and "
       "wait for each other (fewer cores)"},
      {[](auto& facts) { facts.clock_source = "hpet"; }, ask_nothing, Severity::limits,
       "clock_source: hpet, wanted tsc, or the clock of the hypervisor: each reading of the clock "
       "is a slow system call, three per loop turn (echo tsc > "
       "/sys/devices/system/clocksource/clocksource0/current_clocksource)"},
      {[](auto& facts) { facts.clock_source = facts.clock_sources = "acpi_pm"; }, ask_nothing,
       Severity::limits,
       "clock_source: acpi_pm, wanted tsc, or the clock of the hypervisor: each reading of the "
       "clock is a slow system call, three per loop turn (see the kernel's log for the reason why "
       "tsc is not used: dmesg | grep -i tsc)"},
      {[](auto& facts) {
         facts.interrupts = {{.device = "eth0", .queues = 8, .cpus = 1, .count = 100'000}};
       },
       ask_nothing, Severity::limits,
       "interrupts: one CPU handles all interrupts of eth0 (8 queues), wanted one CPU for each "
       "queue: this CPU limits the network of all loops (systemctl start irqbalance)"},
      {[](auto& facts) { facts.memory_bytes_max = std::uint64_t{512} << 20; },
       [](auto& demands) { demands.memory_bytes = (std::uint64_t{700} << 20) + 1; },
       Severity::limits,
       "memory: 512 MiB (control group), wanted 701 MiB at most, by the limits of the server: the "
       "kernel kills the process when clients use these limits (MemoryMax= in its unit, docker run "
       "--memory, or a lower connections_max or body_max)"},
      {[](auto& facts) { facts.memory_bytes = std::uint64_t{512} << 20; },
       [](auto& demands) { demands.memory_bytes = std::uint64_t{700} << 20; }, Severity::limits,
       "memory: 512 MiB (the machine), wanted 700 MiB at most, by the limits of the server: the "
       "kernel kills the process when clients use these limits (a lower connections_max or "
       "body_max)"},
      {[](auto& facts) { facts.address_bytes_max = std::uint64_t{300} << 20; }, ask_two_cores,
       Severity::limits,
       "address_space: 300 MiB (RLIMIT_AS or RLIMIT_DATA), wanted 432 MiB for stacks, arenas and "
       "connections: threads may not start, and requests may fail for want of memory (ulimit -v "
       "unlimited -d unlimited, or LimitAS=infinity and LimitDATA=infinity in its unit)"},
      {[](auto&) {}, ask_real_time, Severity::limits,
       "real_time: priority at most 0 (RLIMIT_RTPRIO), wanted SCHED_FIFO with priority 50: loops "
       "run as ordinary threads (ulimit -r 50, or LimitRTPRIO=50 in its unit)"},
      {[](auto& facts) {
         facts.may_use_real_time = true;
         facts.real_time_us = 0;
       },
       ask_real_time, Severity::limits,
       "real_time: kernel.sched_rt_runtime_us is 0, wanted SCHED_FIFO with priority 50: loops run "
       "as ordinary threads (sysctl -w kernel.sched_rt_runtime_us=950000)"},
      {[](auto& facts) {
         facts.may_use_real_time = true;
         facts.group_real_time_us = 0;
       },
       ask_real_time, Severity::limits,
       "real_time: cpu.rt_runtime_us of its control group is 0, wanted SCHED_FIFO with priority "
       "50: loops run as ordinary threads (raise it, or use another control group)"},
      {[](auto& facts) { facts.locked_bytes_max = 65'536; },
       [](auto& demands) { demands.lock_memory = true; }, Severity::limits,
       "locked_memory: at most 65536 bytes (RLIMIT_MEMLOCK), wanted all memory in RAM: memory is "
       "not locked, and a page fault may stop a loop (ulimit -l unlimited, or "
       "LimitMEMLOCK=infinity in its unit)"},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = rows_of_the_process();
  for (auto more : {rows_of_the_network(), rows_of_cpus()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

TEST(MachineChecks, NameEachFaultAndNothingElse) {
  for (const Row& row : all_rows()) {
    MachineFacts facts = well();
    Demands demands = default_demands();
    row.fault(facts);
    row.demand(demands);
    const auto findings = check_machine(facts, demands);
    ASSERT_FALSE(findings.empty()) << row.line;
    EXPECT_EQ(findings[0].to_line(), row.line);
    EXPECT_EQ(findings[0].severity, row.severity) << row.line;
    for (std::size_t other = 1; other < findings.size(); ++other) {
      EXPECT_EQ(findings[other].severity, Severity::note) << findings[other].to_line();
    }
  }
}

TEST(MachineChecks, SayNothingAboutAFaultThatConcernsNoDemand) {
  for (const Row& row : all_rows()) {
    MachineFacts facts = well();
    row.fault(facts);
    for (const Finding& each : check_machine(facts, {})) {
      EXPECT_EQ(each.severity, Severity::note) << each.to_line();
    }
  }
}

TEST(MachineChecks, SayNothingAboutAWellMachine) {
  EXPECT_TRUE(check_machine(well(), default_demands()).empty());
  Demands all = default_demands();
  all.cores = 4;
  all.connections_max = 100'000;
  all.memory_bytes = std::uint64_t{1} << 40;
  all.outgoing_connections = 28'232;
  all.endpoints = {Endpoint::any(8080), Endpoint::parse("[::1]:1024").value(),
                   Endpoint::parse("unix:/run/a").value()};
  all.writes_files = true;
  EXPECT_TRUE(check_machine(well(), all).empty());
}

TEST(MachineChecks, SayNothingAboutWhatIsUnknown) {
  MachineFacts unknown;
  Demands all = default_demands();
  all.cores = 4;
  all.connections_max = 100'000;
  all.memory_bytes = 1;
  all.endpoints = {Endpoint::any(80)};
  all.real_time_priority = 99;
  all.lock_memory = true;
  EXPECT_TRUE(check_machine(unknown, all).empty());
}

TEST(MachineChecks, AcceptTheExactDemand) {
  MachineFacts facts = well();
  facts.open_files_max = 128;
  facts.cpu_quota = 4;
  facts.memory_bytes_max = 1000;
  facts.tasks_left = 8;
  Demands demands = default_demands();
  demands.cores = 4;
  demands.memory_bytes = 1000;
  EXPECT_TRUE(check_machine(facts, demands).empty());
}

TEST(MachineChecks, NoteWhatMayExplainAMeasurement) {
  MachineFacts facts = well();
  facts.container = "Docker";
  facts.cores = 2;
  facts.numa_nodes = 2;
  facts.huge_pages = "always";
  facts.overcommit = 2;
  facts.cpu_quota = 1.25;
  facts.warnings = {"/sys/fs/cgroup/cpu.max holds \"x\""};
  facts.interrupts = {{.device = "eth0", .queues = 1, .cpus = 1, .count = 100'000}};
  std::vector<std::string> lines;
  for (const Finding& each : check_machine(facts, default_demands())) {
    EXPECT_EQ(each.severity, Severity::note);
    lines.push_back(each.to_line());
  }
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0],
            "interrupts: one CPU handles all interrupts of eth0 (1 queue), wanted receive packet "
            "steering: this CPU limits the network of all loops (echo f > "
            "/sys/class/net/eth0/queues/rx-0/rps_cpus)");
  EXPECT_EQ(lines[1], "container: Docker: its limits apply, not those of the machine");
  EXPECT_EQ(lines[6], "quota: a quota of 1.25 CPUs: fewer loops run, and are not pinned");
}

TEST(MachineChecks, BeginWithTheMostSevereFinding) {
  MachineFacts facts = well();
  facts.backlog_max = 128;
  facts.tasks_left = 1;
  facts.container = "Docker";
  const auto findings = check_machine(facts, default_demands());
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].check, "tasks");
  EXPECT_EQ(findings[1].check, "backlog");
  EXPECT_EQ(findings[2].check, "container");
}

}  // namespace
}  // namespace weir::checks::machine_checks_test
