// Tests of control groups: both versions, nested, in containers, missing and invalid.
#include "weir/os/detail/machine/cgroup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::cgroup_test {
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

TEST_F(CgroupTest, ReadsTheLimitsOfTasksAtTheirBounds) {
  use_v2("/a/b");
  const std::string inner = "sys/fs/cgroup/a/b/";
  const std::string outer = "sys/fs/cgroup/a/";
  tree_.write(inner + "pids.max", "50");
  EXPECT_EQ(read().tasks_left, 50) << "no pids.current";
  tree_.write(inner + "pids.current", "50");
  EXPECT_EQ(read().tasks_left, 0);
  tree_.write(inner + "pids.max", "51");
  EXPECT_EQ(read().tasks_left, 1);
  tree_.write(outer + "pids.max", "0");
  EXPECT_EQ(read().tasks_left, 0);
  EXPECT_THAT(read().warnings, IsEmpty());
  tree_.write(outer + "pids.max", "-5");
  EXPECT_EQ(read().tasks_left, 1);
  EXPECT_THAT(read().warnings, ElementsAre("/sys/fs/cgroup/a/pids.max holds \"-5\""));
}

TEST_F(CgroupTest, TakesTheSmallestMemoryLimitBelowTheUnlimitedOnes) {
  use_v2("/a/b");
  const std::string inner = "sys/fs/cgroup/a/b/memory.max";
  tree_.write(inner, "1152921504606846976");  // 2^60
  EXPECT_FALSE(read().memory_bytes);
  tree_.write(inner, "1152921504606846975");
  EXPECT_EQ(read().memory_bytes, 1152921504606846975);
  tree_.write("sys/fs/cgroup/a/memory.max", "2000");
  EXPECT_EQ(read().memory_bytes, 2000);
  tree_.write(inner, "1000");
  EXPECT_EQ(read().memory_bytes, 1000);
  tree_.write(inner, "0");
  EXPECT_EQ(read().memory_bytes, 0);
  EXPECT_THAT(read().warnings, IsEmpty());
}

TEST_F(CgroupTest, ReadsTheInnermostRealTimeBudgetOfVersion1) {
  use_v1("/a/b");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/";
  EXPECT_FALSE(read().real_time_us);
  tree_.write(cpu + "cpu.rt_runtime_us", "950000\n");
  EXPECT_EQ(read().real_time_us, 950000);
  tree_.write(cpu + "a/b/cpu.rt_runtime_us", "-1\n");
  EXPECT_EQ(read().real_time_us, -1);
  tree_.write(cpu + "a/b/cpu.rt_runtime_us", "0\n");
  EXPECT_EQ(read().real_time_us, 0);
  EXPECT_THAT(read().warnings, IsEmpty());
  tree_.write(cpu + "a/b/cpu.rt_runtime_us", "some\n");
  EXPECT_EQ(read().real_time_us, 950000);
  EXPECT_THAT(read().warnings,
              ElementsAre("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us holds \"some\""));
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

TEST_F(CgroupTest, ReadsVersion2AtAnotherMountPointAmongOthers) {
  tree_.write("proc/self/mountinfo",
              std::string(v1_mounts) +
                  "29 1 0:25 / /other rw - cgroup2\n"  // too short
                  "30 1 0:26 / /unified rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw\n"
                  "31 1 0:27 / /late rw - cgroup2 cgroup2 rw\n");
  tree_.write("proc/self/cgroup", "4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n");
  tree_.write("unified/c/cpu.max", "150000 100000\n");
  tree_.write("unified/c/pids.max", "7\n");
  tree_.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  tree_.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  for (const char* wrong : {"unified/a", "unified/b", "late/c", "other/c", "sys/fs/cgroup/c"}) {
    tree_.write(std::string(wrong) + "/cpu.max", "1000 100000\n");
  }
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.5);
  EXPECT_EQ(read().tasks_left, 7);
}

TEST_F(CgroupTest, ReadsOnlyTheLineOfTheHierarchy) {
  tree_.write("sys/fs/cgroup/right/cpu.max", "150000 100000\n");
  tree_.write("sys/fs/cgroup/wrong/cpu.max", "100000 100000\n");
  for (const std::string_view first : {"5::/wrong\n", "0:cpu:/wrong\n", "00::/wrong\n", "0:\n"}) {
    tree_.write("proc/self/cgroup", std::string(first) + "0::/right\n0::/wrong\n");
    EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.5) << first;
  }
}

TEST_F(CgroupTest, DecodesOctalEscapesOfMountPoints) {
  struct {
    std::string_view written;
    std::string_view folder;
  } const cases[] = {{"/cg\\040", "cg "},       {"/cg\\0401", "cg 1"}, {"/\\134cg", "\\cg"},
                     {"/a\\089b", "a\\089b"},   {"/a\\04", "a\\04"},   {"/a\\", "a\\"},
                     {"/\\011b\\012", "\tb\n"}, {"/a\\1x", "a\\1x"},   {"/\\040\\040", "  "}};
  tree_.write("proc/self/cgroup", "4:cpu:/\n");
  for (const auto& each : cases) {
    tree_.write("proc/self/mountinfo",
                "33 31 0:30 / " + std::string(each.written) + " ro - cgroup cgroup rw,cpu\n");
    const std::string folder(each.folder);
    tree_.write(folder + "/cpu.cfs_quota_us", "300000\n");
    tree_.write(folder + "/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(read().cpu_quota.value_or(0), 3.0) << each.written;
  }
}

TEST_F(CgroupTest, TheRootOfAMountMayBeTheGroupItself) {
  tree_.write("proc/self/mountinfo",
              "33 31 0:30 /docker/a\\040b /cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
  tree_.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/a b\n");
  tree_.write("cpu/cpu.cfs_quota_us", "300000\n");
  tree_.write("cpu/cpu.cfs_period_us", "100000\n");
  tree_.write("cpu/docker/cpu.cfs_quota_us", "100000\n");
  tree_.write("cpu/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 3.0);
}

TEST_F(CgroupTest, ACpusetIsWithinBothVersions) {
  tree_.write("proc/self/cgroup", "2:cpuset:/a\n0::/b\n");
  tree_.write("sys/fs/cgroup/b/cpuset.cpus.effective", "0-3");
  tree_.write("sys/fs/cgroup/cpuset/a/cpuset.cpus", "2-5");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(2, 3));
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
  EXPECT_THAT(read().warnings, IsEmpty()) << "an empty set is no error";
  tree_.write(cpuset + "a/b/cpuset.effective_cpus", "2\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(2));
}

// The effective set includes the restrictions of the parents, which the other set may lack.
TEST_F(CgroupTest, TheEffectiveCpusetOfAGroupGoesBeforeItsOtherSet) {
  use_v1("/a");
  const std::string cpuset = "sys/fs/cgroup/cpuset/a/";
  tree_.write(cpuset + "cpuset.cpus", "0-7\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  tree_.write(cpuset + "cpuset.effective_cpus", "2\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(2));
}

TEST_F(CgroupTest, AnInvalidCpusetIsReportedAndTheNextOneApplies) {
  use_v1("/a/b");
  const std::string cpuset = "sys/fs/cgroup/cpuset/";
  tree_.write(cpuset + "cpuset.cpus", "0-7\n");
  tree_.write(cpuset + "a/cpuset.cpus", "0-3\n");
  tree_.write(cpuset + "a/b/cpuset.effective_cpus", "some\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(0, 1, 2, 3));
  tree_.write(cpuset + "a/b/cpuset.cpus", "1\n");
  EXPECT_THAT(read().cpuset.value(), ElementsAre(1));
  EXPECT_THAT(read().warnings,
              ElementsAre("/sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus holds \"some\""));
}

TEST_F(CgroupTest, TakesTheSmallestTasksAndMemoryOfBothVersions) {
  tree_.write("proc/self/cgroup", "8:pids:/a\n4:memory:/a\n0::/b\n");
  const std::string pids_v1 = "sys/fs/cgroup/pids/a/pids.max";
  const std::string pids_v2 = "sys/fs/cgroup/b/pids.max";
  const std::string memory_v1 = "sys/fs/cgroup/memory/a/memory.limit_in_bytes";
  const std::string memory_v2 = "sys/fs/cgroup/b/memory.max";
  for (const bool first_is_smaller : {true, false}) {
    tree_.write(pids_v1, first_is_smaller ? "10" : "20");
    tree_.write(pids_v2, first_is_smaller ? "20" : "10");
    tree_.write(memory_v1, first_is_smaller ? "1000" : "2000");
    tree_.write(memory_v2, first_is_smaller ? "2000" : "1000");
    EXPECT_EQ(read().tasks_left, 10) << first_is_smaller;
    EXPECT_EQ(read().memory_bytes, 1000) << first_is_smaller;
  }
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

TEST_F(CgroupTest, AcceptsTheSmallestNumbers) {
  use_v1("/a");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/a/";
  tree_.write(cpu + "cpu.cfs_quota_us", "1");
  tree_.write(cpu + "cpu.cfs_period_us", "2");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 0.5);
  tree_.write(cpu + "cpu.cfs_quota_us", "2");
  tree_.write(cpu + "cpu.cfs_period_us", "1");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 2.0);
  use_v2("/");
  tree_.write("sys/fs/cgroup/cpu.max", "1 1");
  EXPECT_DOUBLE_EQ(read().cpu_quota.value(), 1.0);
  EXPECT_THAT(read().warnings, IsEmpty());
}

TEST_F(CgroupTest, AWarningQuotesAtMostFortyBytes) {
  use_v2("/");
  const std::string forty(40, 'x');
  for (const char* rest : {"", "y"}) {
    tree_.write("sys/fs/cgroup/cpu.max", forty + rest);
    EXPECT_THAT(read().warnings, ElementsAre("/sys/fs/cgroup/cpu.max holds \"" + forty + "\""));
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
        "1 2 3 /\\9 /\\ rw shared:1 - nothing none rw", "- cgroup2 cgroup2 rw",
        "1 - cgroup2 cgroup2 rw", "1 2 - cgroup2 cgroup2 rw"}) {
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
}  // namespace weir::os::cgroup_test
