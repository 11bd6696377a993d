// Tests of the topology on machines that are simulated by files.
#include "weir/os/detail/machine/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/machine/cpu_list.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::topology_test {
namespace {

using testing::ElementsAre;

class TopologyTest : public testing::Test {
 protected:
  /// Writes a machine with the `siblings` of each core, in the kernel's list format.
  void machine(std::string_view online, const std::vector<std::string>& siblings) {
    tree_.write("sys/devices/system/cpu/online", online);
    for (const std::string& core : siblings) {
      const std::vector<int> threads = parse_cpu_list(core).value();
      for (const int cpu : threads) write_siblings(cpu, core);
    }
  }

  void write_siblings(int cpu, std::string_view text,
                      std::string_view file = "core_cpus_list") const {
    tree_.write(
        "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + std::string(file),
        text);
  }

  void numa(const std::vector<std::string>& nodes) const {
    tree_.write("sys/devices/system/node/online", "0-" + std::to_string(nodes.size() - 1) + "\n");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      tree_.write("sys/devices/system/node/node" + std::to_string(i) + "/cpulist", nodes[i]);
    }
  }

  void quota(std::string_view cpu_max) const {
    tree_.write("proc/self/cgroup", "0::/\n");
    tree_.write("sys/fs/cgroup/cpu.max", cpu_max);
  }

  Topology read(std::string_view affinity) const {
    return read_topology({tree_.root(), parse_cpu_list(affinity).value()});
  }

  static std::string cpus(const Topology& topology) {
    std::string text;
    for (const PhysicalCore& core : topology.cores) {
      if (!text.empty()) text += ' ';
      text += std::to_string(core.cpu);
      if (core.numa_node != 0) text += '@' + std::to_string(core.numa_node);
    }
    return text;
  }

  TemporaryTree tree_;
};

TEST_F(TopologyTest, ExcludesHyperThreads) {
  machine("0-7", {"0,4", "1,5", "2,6", "3,7"});
  const Topology topology = read("0-7");
  EXPECT_EQ(cpus(topology), "0 1 2 3");
  EXPECT_EQ(topology.cpus_online, 8u);
  EXPECT_EQ(topology.cpus_allowed, 8u);
  EXPECT_EQ(topology.physical_cores, 4u);
  EXPECT_EQ(topology.explanation, "4 cores: 4 physical of 8 CPUs");
}

TEST_F(TopologyTest, RecognizesAdjacentSiblings) {
  machine("0-3", {"0-1", "2-3"});
  EXPECT_EQ(cpus(read("0-3")), "0 2");
}

TEST_F(TopologyTest, ReadsTheOlderSiblingsFile) {
  tree_.write("sys/devices/system/cpu/online", "0-1");
  for (const int cpu : {0, 1}) write_siblings(cpu, "0-1", "thread_siblings_list");
  EXPECT_EQ(cpus(read("0-1")), "0");
}

TEST_F(TopologyTest, ReadsTheOlderSiblingsFileOnlyIfTheNewerOneIsOfNoUse) {
  tree_.write("sys/devices/system/cpu/online", "0-1");
  for (const int cpu : {0, 1}) write_siblings(cpu, "0-1", "thread_siblings_list");
  for (const std::string_view of_no_use : {"", "x", "2"}) {
    for (const int cpu : {0, 1}) write_siblings(cpu, of_no_use);
    EXPECT_EQ(cpus(read("0-1")), "0") << of_no_use;
  }
  for (const int cpu : {0, 1}) write_siblings(cpu, std::to_string(cpu));
  EXPECT_EQ(cpus(read("0-1")), "0 1");
}

TEST_F(TopologyTest, NumaNodesMayHaveGapsAndNoCpus) {
  machine("0-2", {"0", "1", "2"});
  tree_.write("sys/devices/system/node/online", "0,2-3\n");
  tree_.write("sys/devices/system/node/node0/cpulist", "2\n");
  tree_.write("sys/devices/system/node/node2/cpulist", "\n");
  tree_.write("sys/devices/system/node/node3/cpulist", "0-1\n");
  EXPECT_EQ(cpus(read("0-2")), "2 0@3 1@3");
}

TEST_F(TopologyTest, TheLowestAllowedSiblingRepresentsItsCore) {
  machine("0-7", {"0,4", "1,5", "2,6", "3,7"});
  const Topology topology = read("3-5");
  EXPECT_EQ(cpus(topology), "3 4 5");
  EXPECT_EQ(cpus(read("2,5,6")), "2 5");
  EXPECT_EQ(topology.explanation, "3 cores: 3 physical of 3 CPUs allowed (8 online)");
}

TEST_F(TopologyTest, ExcludesOfflineCpus) {
  machine("0,2-3", {"0", "2", "3"});
  EXPECT_EQ(cpus(read("0-3")), "0 2 3");
}

TEST_F(TopologyTest, ACpusetLimitsTheCores) {
  machine("0-7", {"0,4", "1,5", "2,6", "3,7"});
  tree_.write("proc/self/cgroup", "0::/a\n");
  tree_.write("sys/fs/cgroup/a/cpuset.cpus.effective", "2,4,6\n");
  const Topology topology = read("0-7");
  EXPECT_EQ(cpus(topology), "2 4");
  EXPECT_EQ(topology.cpus_allowed, 3u);
}

TEST_F(TopologyTest, IgnoresACpusetThatContradictsTheAffinity) {
  machine("0-3", {"0", "1", "2", "3"});
  tree_.write("proc/self/cgroup", "0::/\n");
  tree_.write("sys/fs/cgroup/cpuset.cpus.effective", "2-3\n");
  EXPECT_EQ(cpus(read("0-1")), "0 1");
  EXPECT_FALSE(read("2").limited_by_quota) << "affinity and cpusets are no quota";
}

TEST_F(TopologyTest, RoundsAQuotaUp) {
  machine("0-7", {"0", "1", "2", "3", "4", "5", "6", "7"});
  struct {
    std::string_view cpu_max;
    std::size_t cores;
    std::string_view explanation;
  } const cases[] = {
      {"150000 100000", 2, "2 cores: 8 physical of 8 CPUs, cgroup quota of 1.5 CPUs"},
      {"100000 100000", 1, "1 core: 8 physical of 8 CPUs, cgroup quota of 1 CPU"},
      {"100001 100000", 2, "2 cores: 8 physical of 8 CPUs, cgroup quota of 1 CPU"},
      {"123456 100000", 2, "2 cores: 8 physical of 8 CPUs, cgroup quota of 1.23 CPUs"},
      {"800000 100000", 8, "8 cores: 8 physical of 8 CPUs, cgroup quota of 8 CPUs (no effect)"},
      {"25000 100000", 1, "1 core: 8 physical of 8 CPUs, cgroup quota of 0.25 CPUs"},
      {"1 100000", 1, "1 core: 8 physical of 8 CPUs, cgroup quota of less than 0.01 CPUs"},
      {"700000 100000", 7, "7 cores: 8 physical of 8 CPUs, cgroup quota of 7 CPUs"},
      {"750000 100000", 8, "8 cores: 8 physical of 8 CPUs, cgroup quota of 7.5 CPUs (no effect)"},
      {"9000000000000000000 1", 8,
       "8 cores: 8 physical of 8 CPUs, cgroup quota of 9000000000000000000 CPUs "
       "(no effect)"},
      {"max 100000", 8, "8 cores: 8 physical of 8 CPUs"},
  };
  for (const auto& each : cases) {
    quota(each.cpu_max);
    const Topology topology = read("0-7");
    EXPECT_EQ(topology.cores.size(), each.cores) << each.cpu_max;
    EXPECT_EQ(topology.physical_cores, 8u);
    EXPECT_EQ(topology.limited_by_quota, each.cores < 8) << each.cpu_max;
    EXPECT_EQ(topology.explanation, each.explanation);
  }
}

TEST_F(TopologyTest, ReadsAQuotaOfVersion1) {
  machine("0-3", {"0", "1", "2", "3"});
  tree_.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
  tree_.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "210000\n");
  tree_.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  const Topology topology = read("0-3");
  EXPECT_EQ(cpus(topology), "0 1 2");
  EXPECT_DOUBLE_EQ(topology.cpu_quota.value(), 2.1);
}

TEST_F(TopologyTest, ReportsNumaNodesAndKeepsAQuotaOnOneNode) {
  machine("0-7", {"0", "1", "2", "3", "4", "5", "6", "7"});
  numa({"0,2,4,6\n", "1,3,5,7\n"});
  EXPECT_EQ(cpus(read("0-7")), "0 2 4 6 1@1 3@1 5@1 7@1");
  quota("300000 100000");
  EXPECT_EQ(cpus(read("0-7")), "0 2 4");
}

TEST_F(TopologyTest, WithoutFilesEachAllowedCpuIsACore) {
  const Topology topology = read("0-2");
  EXPECT_EQ(cpus(topology), "0 1 2");
  EXPECT_EQ(topology.explanation, "3 cores: 3 physical of 3 CPUs");
}

TEST_F(TopologyTest, AnEmptyAffinityStillHasACore) {
  EXPECT_EQ(cpus(read("")), "0");
  machine("2-3", {"2", "3"});
  EXPECT_EQ(read("").cores.size(), 1u);
}

TEST_F(TopologyTest, InvalidFilesLimitNothing) {
  for (const std::string_view text : {"", "\n", "x", "0-", "4-2", "0-99999999", "\xff", "0,,1"}) {
    tree_.write("sys/devices/system/cpu/online", text);
    tree_.write("sys/devices/system/node/online", text);
    for (const int cpu : {0, 1, 2}) write_siblings(cpu, text);
    EXPECT_EQ(cpus(read("0-2")), "0 1 2") << text;
  }
  write_siblings(0, "1-2");
  EXPECT_EQ(cpus(read("0-2")), "0 1 2") << "a core that does not contain its own CPU";
}

TEST_F(TopologyTest, ExplainsAnInvalidQuota) {
  machine("0-1", {"0", "1"});
  quota("plenty");
  EXPECT_EQ(read("0-1").explanation,
            "2 cores: 2 physical of 2 CPUs; ignored: /sys/fs/cgroup/cpu.max holds \"plenty\"");
}

TEST(Topology, ReadsThisMachine) {
  const Topology topology = read_topology();
  ASSERT_FALSE(topology.cores.empty());
  EXPECT_LE(topology.cores.size(), topology.physical_cores);
  EXPECT_LE(topology.physical_cores, topology.cpus_allowed);
  const std::vector<int> allowed = allowed_cpus();
  for (const PhysicalCore& core : topology.cores) EXPECT_THAT(allowed, testing::Contains(core.cpu));
}

}  // namespace
}  // namespace weir::os::topology_test
