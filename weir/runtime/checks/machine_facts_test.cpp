// Tests of reading the facts of a machine from invented files, and from this machine.
#include "weir/runtime/checks/machine_facts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "weir/os/test/temporary_tree.hpp"
#include "weir/runtime/checks/machine_checks.hpp"

namespace weir::checks::machine_facts_test {
namespace {

TEST(MachineFacts, AreReadFromFiles) {
  const os::TemporaryTree tree;
  tree.write("proc/self/status", "Name:\tweir\n");
  tree.write("proc/thread-self/status", "CapEff:\t0000000000804400\n");  // 10, 14, 23
  tree.write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max data size             5368709120           unlimited            bytes\n"
             "Max address space         unlimited            unlimited            bytes\n"
             "Max processes             5                    9                    processes\n"
             "Max open files            1024                 4096                 files\n"
             "Max locked memory         65536                unlimited            bytes\n"
             "Max file size             0                    unlimited            bytes\n"
             "Max realtime priority     0                    50\n");
  tree.write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
  tree.write("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
  tree.write("proc/meminfo", "MemTotal:        8152588 kB\nMemFree:          123456 kB\n");
  tree.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n");
  tree.write("proc/sys/net/netfilter/nf_conntrack_count", "17\n");
  tree.write("proc/sys/net/core/somaxconn", "128\n");
  tree.write("proc/sys/net/ipv4/tcp_max_syn_backlog", "64\n");
  tree.write("proc/sys/net/ipv4/tcp_syncookies", "0\n");
  tree.write("proc/sys/net/ipv4/ip_local_port_range", "40000\t40099\n");
  tree.write("proc/sys/net/ipv4/ip_unprivileged_port_start", "80\n");
  tree.write("proc/sys/net/ipv6/conf/all/disable_ipv6", "1\n");
  tree.write("proc/sys/vm/overcommit_memory", "2\n");
  tree.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  tree.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm\n");
  tree.write("proc/self/cgroup", "0::/\n");
  tree.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  tree.write("sys/fs/cgroup/memory.max", "1048576\n");
  tree.write("sys/fs/cgroup/pids.max", "10\n");
  tree.write("sys/fs/cgroup/pids.current", "3\n");
  tree.write(".dockerenv", "");
  const MachineFacts facts = read_machine_facts(tree.root());
  EXPECT_EQ(facts.kernel, "6.1.0-28-amd64");
  EXPECT_EQ(facts.container, "Docker");
  EXPECT_TRUE(facts.proc_mounted);
  EXPECT_EQ(facts.open_files_max, 4096U);
  EXPECT_EQ(facts.locked_bytes_max, std::uint64_t(-1));
  EXPECT_EQ(facts.real_time_priority_max, 50U);
  EXPECT_EQ(facts.processes_max, 5U) << "the soft limit, which Weir does not raise";
  EXPECT_EQ(facts.file_bytes_max, 0U);
  EXPECT_EQ(facts.address_bytes_max, std::uint64_t{5} << 30) << "the lower one of the two";
  EXPECT_EQ(facts.memory_bytes, std::uint64_t{8152588} << 10);
  EXPECT_EQ(facts.tracked_connections_max, 65'536);
  EXPECT_EQ(facts.tracked_connections, 17);
  EXPECT_TRUE(facts.may_bind_any_port && facts.may_lock_memory && facts.may_use_real_time);
  EXPECT_FALSE(facts.may_exceed_processes);
  EXPECT_EQ(facts.backlog_max, 128);
  EXPECT_EQ(facts.syn_backlog_max, 64);
  EXPECT_EQ(facts.syn_cookies, 0);
  EXPECT_EQ(facts.ports_max, 100);
  EXPECT_EQ(facts.privileged_ports_end, 80);
  EXPECT_EQ(facts.ipv6, false);
  EXPECT_EQ(facts.cpu_quota, 0.5);
  EXPECT_EQ(facts.real_time_us, 950'000);
  EXPECT_EQ(facts.clock_source, "hpet");
  EXPECT_EQ(facts.clock_sources, "hpet acpi_pm");
  EXPECT_EQ(facts.memory_bytes_max, 1'048'576U);
  EXPECT_EQ(facts.tasks_left, 7U);
  EXPECT_EQ(facts.overcommit, 2);
  EXPECT_EQ(facts.huge_pages, "madvise");
}

TEST(MachineFacts, OfMissingFilesAreUnknown) {
  const os::TemporaryTree tree;
  const MachineFacts facts = read_machine_facts(tree.root());
  EXPECT_FALSE(facts.proc_mounted);
  EXPECT_FALSE(facts.open_files_max || facts.backlog_max || facts.memory_bytes_max || facts.ipv6);
  EXPECT_FALSE(facts.memory_bytes || facts.address_bytes_max || facts.tracked_connections_max);
  EXPECT_GE(facts.cores, 1U) << "the affinity mask is known without files";
}

TEST(MachineFacts, IncludeTheInterruptsOfDevices) {
  const os::TemporaryTree tree;
  tree.write("proc/interrupts",
             "           CPU0       CPU1\n"
             " 24:      90000          0  PCI-MSI  0-edge  eth0-rx-0\n"
             " 25:      10000        900  PCI-MSI  1-edge  eth0-rx-1\n"
             " 26:          0          0  PCI-MSI  2-edge  eth0-rx-2\n"
             " 30:       5000       5000  PCI-MSI  0-edge  virtio1-input.0\n"
             "NMI:          7          7   Non-maskable interrupts\n");
  for (const char* number : {"24", "25", "26"}) {
    tree.write(std::string("sys/class/net/eth0/device/msi_irqs/") + number, "msi\n");
  }
  tree.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000000\n");
  // The folder of a virtio device is a link to a part of its PCI device.
  tree.write("sys/devices/pci/msi_irqs/30", "msi\n");
  tree.write("sys/devices/pci/virtio1/status", "\n");
  tree.write("sys/class/net/eth1/queues/rx-0/rps_cpus", "3\n");
  std::filesystem::create_directory_symlink(tree.path("sys/devices/pci/virtio1"),
                                            tree.path("sys/class/net/eth1/device"));
  tree.write("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n");
  MachineFacts facts;
  add_interrupt_facts(facts, tree.root());
  ASSERT_EQ(facts.interrupts.size(), 2U);
  EXPECT_EQ(facts.interrupts[0].device, "eth0");
  EXPECT_EQ(facts.interrupts[0].queues, 2U);
  EXPECT_EQ(facts.interrupts[0].cpus, 1U) << "0.9 % on CPU 1 are too few to count";
  EXPECT_EQ(facts.interrupts[0].count, 100'900U);
  EXPECT_FALSE(facts.interrupts[0].steered);
  EXPECT_EQ(facts.interrupts[1].device, "eth1");
  EXPECT_EQ(facts.interrupts[1].cpus, 2U);
  EXPECT_TRUE(facts.interrupts[1].steered);
}

TEST(MachineFacts, OfThisMachineAreKnown) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_TRUE(facts.proc_mounted);
  EXPECT_FALSE(facts.kernel.empty());
  EXPECT_TRUE(facts.open_files_max && facts.processes_max && facts.backlog_max && facts.ports_max);
  EXPECT_GE(facts.cpus_online, facts.cpus_allowed);
  EXPECT_GE(facts.cpus_allowed, facts.cores);
}

}  // namespace
}  // namespace weir::checks::machine_facts_test
