// Tests of control groups: both versions, nested, in containers, missing and invalid.
#include "weir/os/detail/machine/cgroup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view v2_mount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate\n";
constexpr std::string_view v1_mounts =
    "24 1 8:1 / / rw shared:1 - ext4 /dev/root rw\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";

class CgroupTest : public testing::Test {
 protected:
  CgroupLimits read() const { return read_cgroup_limits(tree_.root()); }

  void use_v2(std::string_view group) const {
    tree_.write("proc/self/mountinfo", v2_mount);
    tree_.write("proc/self/cgroup", "0::" + std::string(group) + "\n");
  }

  void use_v1(std::string_view group) const {
    const std::string name(group);
    tree_.write("proc/self/mountinfo", v1_mounts);
    tree_.write("proc/self/cgroup",
                "5:cpuset:" + name + "\n4:cpu,cpuacct:" + name + "\n1:name=systemd:/\n");
  }

  TemporaryTree tree_;
};

TEST_F(CgroupTest, MissingFilesLimitNothing) {
  const CgroupLimits limits = read();
  EXPECT_FALSE(limits.cpu_quota);
  EXPECT_FALSE(limits.cpuset);
  EXPECT_THAT(limits.warnings, IsEmpty());
}

TEST_F(CgroupTest, ReadsTasksAndMemoryInVersion2) {
  use_v2("/a.slice/b.service");
  tree_.write("sys/fs/cgroup/a.slice/b.service/pids.max", "max\n");
  tree_.write("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  EXPECT_FALSE(read().tasks_left);
  EXPECT_FALSE(read().memory_bytes);
  tree_.write("sys/fs/cgroup/a.slice/pids.max", "100\n");
  tree_.write("sys/fs/cgroup/a.slice/pids.current", "30\n");
  tree_.write("sys/fs/cgroup/a.slice/memory.max", "67108864\n");
  EXPECT_EQ(read().tasks_left, 70);
  EXPECT_EQ(read().memory_bytes, 67108864);
  tree_.write("sys/fs/cgroup/a.slice/b.service/pids.max", "20\n");
  tree_.write("sys/fs/cgroup/a.slice/b.service/pids.current", "25\n");
  EXPECT_EQ(read().tasks_left, 0);
  EXPECT_THAT(read().warnings, IsEmpty());
  tree_.write("sys/fs/cgroup/a.slice/memory.max", "much\n");
  EXPECT_FALSE(read().memory_bytes);
  EXPECT_THAT(read().warnings, ElementsAre(HasSubstr("memory.max")));
}

TEST_F(CgroupTest, ReadsTasksAndMemoryInVersion1) {
  tree_.write("proc/self/mountinfo", "");
  tree_.write("proc/self/cgroup", "8:pids:/x\n4:memory:/y\n");
  tree_.write("sys/fs/cgroup/pids/x/pids.max", "50\n");
  tree_.write("sys/fs/cgroup/pids/x/pids.current", "8\n");
  tree_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().tasks_left, 42);
  EXPECT_FALSE(read().memory_bytes);
  tree_.write("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(read().memory_bytes, 1048576);
}

TEST_F(CgroupTest, Version2TakesTheSmallestAlongThePath) {
  use_v2("/a.slice/b.service");
  tree_.write("sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
  EXPECT_FALSE(read().cpu_quota);
  tree_.write("sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.5);
  tree_.write("sys/fs/cgroup/a.slice/b.service/cpu.max", "300000 50000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.5);
  tree_.write("sys/fs/cgroup/a.slice/b.service/cpu.max", "10000 20000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 0.5);
  tree_.write("sys/fs/cgroup/other/cpu.max", "1000 100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 0.5) << "the quota of another group does not apply";
}

TEST_F(CgroupTest, ReadsVersion2InsideAContainer) {
  use_v2("/");
  tree_.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  tree_.write("sys/fs/cgroup/cpuset.cpus.effective", "2-3\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 2.0);
  EXPECT_THAT(read().cpuset.value(), ElementsAre(2, 3));
}

TEST_F(CgroupTest, AGroupOutsideOfTheNamespaceReadsTheTopGroup) {
  use_v2("/../../elsewhere");
  tree_.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 2.0);
}

TEST_F(CgroupTest, Version1TakesTheSmallestAlongThePath) {
  use_v1("/docker/abc");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/";
  tree_.write(cpu + "cpu.cfs_quota_us", "-1\n");
  tree_.write(cpu + "cpu.cfs_period_us", "100000\n");
  tree_.write(cpu + "docker/abc/cpu.cfs_quota_us", "-1\n");
  tree_.write(cpu + "docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(read().cpu_quota);
  tree_.write(cpu + "docker/cpu.cfs_quota_us", "250000\n");
  tree_.write(cpu + "docker/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 2.5);
  tree_.write(cpu + "docker/abc/cpu.cfs_quota_us", "50000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 0.5);
  EXPECT_THAT(read().warnings, IsEmpty());
}

TEST_F(CgroupTest, ReadsVersion1IfOnlyTheContainersGroupIsMounted) {
  tree_.write("proc/self/mountinfo",
              "33 31 0:30 /docker/abc /cg\\040roup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
  tree_.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc/inner\n");
  tree_.write("cg roup/cpu/cpu.cfs_quota_us", "300000\n");
  tree_.write("cg roup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 3.0);
  tree_.write("cg roup/cpu/inner/cpu.cfs_quota_us", "100000\n");
  tree_.write("cg roup/cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.0);
  tree_.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abcdef/inner\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 3.0) << "/docker/abcdef is not in /docker/abc";
}

TEST_F(CgroupTest, TriesTheUsualMountPointsWithoutMountinfo) {
  tree_.write("proc/self/cgroup", "3:cpu:/a\n2:cpuset:/a\n0::/b\n");
  tree_.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000");
  tree_.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  tree_.write("sys/fs/cgroup/cpuset/a/cpuset.cpus", "1");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 4.0);
  EXPECT_THAT(read().cpuset.value(), ElementsAre(1));
  tree_.write("sys/fs/cgroup/b/cpu.max", "350000 100000");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 3.5);
}

TEST_F(CgroupTest, TheInnermostCpusetThatIsNotEmptyApplies) {
  use_v1("/a/b");
  const std::string cpuset = "sys/fs/cgroup/cpuset/";
  tree_.write(cpuset + "cpuset.effective_cpus", "0-7\n");
  tree_.write(cpuset + "a/cpuset.effective_cpus", "0-3\n");
  tree_.write(cpuset + "a/b/cpuset.effective_cpus", "\n");
  tree_.write(cpuset + "a/b/cpuset.cpus", "\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(0, 1, 2, 3));
  tree_.write(cpuset + "a/b/cpuset.effective_cpus", "2\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(2));
}

TEST_F(CgroupTest, ReportsAndIgnoresInvalidValues) {
  use_v2("/a/b");
  tree_.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  for (const std::string_view text :
       {"", "many", "max100000", "100000", "100000 0", "0 100000", "-5 100000", "100000 100000 1",
        "1e5 100000", "99999999999999999999 100000", "100000 99999999999999999999", "\xff\xfe"}) {
    tree_.write("sys/fs/cgroup/a/b/cpu.max", text);
    const CgroupLimits limits = read();
    EXPECT_DOUBLE_EQ(limits.cpu_quota.value(), 1.5) << text;
    EXPECT_THAT(limits.warnings, ElementsAre(HasSubstr("/sys/fs/cgroup/a/b/cpu.max"))) << text;
  }
  tree_.write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  tree_.write("sys/fs/cgroup/a/b/cpuset.cpus.effective", "zero");
  EXPECT_FALSE(read().cpuset);
  EXPECT_THAT(read().warnings,
              ElementsAre("/sys/fs/cgroup/a/b/cpuset.cpus.effective holds \"zero\""));
}

TEST_F(CgroupTest, ReportsInvalidValuesOfVersion1) {
  use_v1("/a");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/a/";
  tree_.write(cpu + "cpu.cfs_quota_us", "100000");
  EXPECT_FALSE(read().cpu_quota) << "a quota without a period";
  EXPECT_EQ(read().warnings.size(), 1u);
  for (const std::string_view period : {"0", "-1", "x", "1.5"}) {
    tree_.write(cpu + "cpu.cfs_period_us", period);
    EXPECT_FALSE(read().cpu_quota) << period;
    EXPECT_THAT(read().warnings, ElementsAre(HasSubstr("cpu.cfs_period_us"))) << period;
  }
  tree_.write(cpu + "cpu.cfs_period_us", "100000");
  for (const std::string_view quota : {"", "0", "all"}) {
    tree_.write(cpu + "cpu.cfs_quota_us", quota);
    EXPECT_FALSE(read().cpu_quota) << quota;
    EXPECT_THAT(read().warnings, ElementsAre(HasSubstr("cpu.cfs_quota_us"))) << quota;
  }
}

TEST_F(CgroupTest, InvalidProcFilesLimitNothing) {
  tree_.write("sys/fs/cgroup/cpu.max", "100000 100000");
  for (const std::string_view text :
       {"", "\n\n", ":", "::", "0:", "x::/", "\0\0\0", "0:cpu", "- -"}) {
    tree_.write("proc/self/cgroup", text);
    tree_.write("proc/self/mountinfo", text);
    const CgroupLimits limits = read();
    EXPECT_FALSE(limits.cpu_quota) << text;
    EXPECT_THAT(limits.warnings, IsEmpty()) << text;
  }
  use_v2("/");
  for (const std::string_view text :
       {"-", "a b c d - cgroup2", "1 2 3 / /x rw - cgroup2 cgroup2", "- - - - - - - -",
        "1 2 3 /\\9 /\\ rw shared:1 - nothing none rw"}) {
    tree_.write("proc/self/mountinfo", text);
    read();
  }
}

TEST(Cgroup, ReadsThisMachine) {
  const CgroupLimits limits = read_cgroup_limits("");
  EXPECT_GT(limits.cpu_quota.value_or(1), 0);
  EXPECT_THAT(limits.warnings, IsEmpty());
}

}  // namespace
}  // namespace weir::os
