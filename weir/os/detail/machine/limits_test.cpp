// Tests of limits, which child processes raise so that the test process keeps its own.
#include "weir/os/detail/machine/limits.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/scarce_descriptors.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::limits_test {
namespace {

rlimit read(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit;
}

/// Ends this (child) process with 0 if `holds`, or with a message and an error status.
[[noreturn]] void finish(bool holds, const Limit& limit) {
  std::fprintf(stderr, "%s\n", limit.explanation.c_str());
  ::_exit(holds ? 0 : 1);
}

[[noreturn]] void raise_from_64() {
  const rlimit start{64, read(RLIMIT_NOFILE).rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &start);
  const Limit limit = raise_descriptor_limit(64);
  const rlimit after = read(RLIMIT_NOFILE);
  finish(limit.before == 64 && limit.now == start.rlim_max && after.rlim_cur == start.rlim_max &&
             after.rlim_max == start.rlim_max,
         limit);
}

TEST(LimitsDeathTest, RaisesTheSoftLimitToTheHardLimit) {
  const std::string hard = std::to_string(read(RLIMIT_NOFILE).rlim_max);
  EXPECT_EXIT(raise_from_64(), testing::ExitedWithCode(0),
              "^open files: " + hard + " \\(raised from 64\\)\n$");
}

TEST(Limits, CountsFreeDescriptorsUpToANumber) {
  const DescriptorLimit three(3);
  EXPECT_EQ(free_descriptors(100), 3U);
  EXPECT_EQ(free_descriptors(2), 2U);
  const FreeDescriptorZero one_more;
  EXPECT_EQ(free_descriptors(100), 3U) << "the copy of standard input takes one";
}

[[noreturn]] void ask_for_more_than_allowed() {
  const rlimit start{64, 100};
  ::setrlimit(RLIMIT_NOFILE, &start);
  if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(2);
  const Limit limit = raise_descriptor_limit(200);
  finish(limit.now == 100 && read(RLIMIT_NOFILE).rlim_cur == 100, limit);
}

TEST(LimitsDeathTest, ExplainsWhyTheHardLimitStays) {
  EXPECT_EXIT(
      ask_for_more_than_allowed(), testing::ExitedWithCode(0),
      "^open files: 100 \\(raised from 64; cannot raise to 200: Operation not permitted\\)\n$");
}

[[noreturn]] void ask_for_more_at_the_hard_limit() {
  const rlimit start{100, 100};
  ::setrlimit(RLIMIT_NOFILE, &start);
  if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(2);
  const Limit limit = raise_descriptor_limit(101);
  finish(limit.before == 100 && limit.now == 100 && read(RLIMIT_NOFILE).rlim_cur == 100, limit);
}

TEST(LimitsDeathTest, ExplainsARefusalThatChangedNothing) {
  EXPECT_EXIT(ask_for_more_at_the_hard_limit(), testing::ExitedWithCode(0),
              "^open files: 100 \\(cannot raise to 101: Operation not permitted\\)\n$");
}

/// Returns true if this process has CAP_SYS_RESOURCE.
bool may_raise_hard_limits() {
  const std::string status = read_text_file("/proc/self/status").value();
  const auto at = status.find("CapEff:") + std::string_view("CapEff:").size();
  return (std::stoull(status.substr(at), nullptr, 16) >> 24 & 1) != 0;
}

[[noreturn]] void raise_both_limits() {
  const rlimit start{64, 100};
  ::setrlimit(RLIMIT_NOFILE, &start);
  const Limit limit = raise_descriptor_limit(200);
  const rlimit after = read(RLIMIT_NOFILE);
  finish(limit.before == 64 && limit.now == 200 && after.rlim_cur == 200 && after.rlim_max == 200,
         limit);
}

TEST(LimitsDeathTest, RaisesBothLimitsWithThePrivilege) {
  if (!may_raise_hard_limits()) GTEST_SKIP() << "not allowed here";
  EXPECT_EXIT(raise_both_limits(), testing::ExitedWithCode(0),
              "^open files: 200 \\(raised from 64\\)\n$");
}

[[noreturn]] void ask_for_less() {
  const rlimit before = read(RLIMIT_NOFILE);
  const rlimit start{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &start);
  const Limit limit = raise_descriptor_limit(1);
  finish(limit.now == before.rlim_max && read(RLIMIT_NOFILE).rlim_cur == before.rlim_max, limit);
}

TEST(LimitsDeathTest, LowersNothing) {
  const std::string hard = std::to_string(read(RLIMIT_NOFILE).rlim_max);
  EXPECT_EXIT(ask_for_less(), testing::ExitedWithCode(0), "^open files: " + hard + "\n$");
}

[[noreturn]] void ask_beyond_nr_open() {
  const Limit limit = raise_descriptor_limit(~std::uint64_t{0});
  finish(limit.now >= read(RLIMIT_NOFILE).rlim_cur, limit);
}

[[noreturn]] void ask_beyond_nr_open_without_privilege() {
  const rlimit start{100, 100};
  ::setrlimit(RLIMIT_NOFILE, &start);
  if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(2);
  const Limit limit = raise_descriptor_limit(~std::uint64_t{0});
  finish(limit.now == 100, limit);
}

TEST(LimitsDeathTest, RequestsAtMostTheKernelsMaximum) {
  EXPECT_EXIT(ask_beyond_nr_open(), testing::ExitedWithCode(0), "^open files: [0-9]+");
  EXPECT_EXIT(ask_beyond_nr_open_without_privilege(), testing::ExitedWithCode(0),
              "^open files: 100 \\(cannot raise to " +
                  read_text_file("/proc/sys/fs/nr_open").value() +
                  ": Operation not permitted\\)\n$");
}

[[noreturn]] void raise_an_unknown_limit() {
  if (!deny({SYS_prlimit64, 1, RLIMIT_NOFILE}, EPERM)) ::_exit(2);
  const Limit limit = raise_descriptor_limit(100);
  finish(limit.before == 0 && limit.now == 0, limit);
}

TEST(LimitsDeathTest, ExplainsALimitThatCannotBeRead) {
  EXPECT_EXIT(raise_an_unknown_limit(), testing::ExitedWithCode(0),
              "^open files: unknown, Operation not permitted\n$");
}

TEST(Limits, ReadsTheListenBacklog) {
  const TemporaryTree tree;
  EXPECT_EQ(listen_backlog_max(tree.root()), 4096);
  tree.write("proc/sys/net/core/somaxconn", "128\n");
  EXPECT_EQ(listen_backlog_max(tree.root()), 128);
  tree.write("proc/sys/net/core/somaxconn", "0\n");
  EXPECT_EQ(listen_backlog_max(tree.root()), 0);
  for (const std::string_view text : {"", "many", "-1", "99999999999999", "128x", "128 1"}) {
    tree.write("proc/sys/net/core/somaxconn", text);
    EXPECT_EQ(listen_backlog_max(tree.root()), 4096) << text;
  }
  EXPECT_GT(listen_backlog_max(), 0);
}

TEST(ThreadLimit, IsTheLeastOfAllLimits) {
  const TemporaryTree tree;
  tree.write("proc/self/cgroup", "0::/a\n");
  tree.write("proc/sys/kernel/threads-max", "300\n");
  EXPECT_EQ(read_thread_limit(tree.root()).threads_max, 150U);
  tree.write("sys/fs/cgroup/a/pids.max", "100\n");
  tree.write("sys/fs/cgroup/a/pids.current", "20\n");
  EXPECT_EQ(read_thread_limit(tree.root()).explanation,
            "40 threads: half of the tasks that pids.max still allows");
  tree.write("sys/fs/cgroup/a/memory.max", "4194304\n");
  EXPECT_EQ(read_thread_limit(tree.root()).explanation,
            "16 threads: a quarter of the cgroup's memory");
  EXPECT_EQ(read_thread_limit(tree.root(), 224 * 1024).threads_max, 4U) << "with the whole stack";
  tree.write("sys/fs/cgroup/a/pids.current", "100\n");
  EXPECT_EQ(read_thread_limit(tree.root()).threads_max, 1U);
  EXPECT_EQ(read_thread_limit(tree.root()).explanation,
            "1 threads: half of the tasks that pids.max still allows");
}

[[noreturn]] void limit_processes_of_the_user(const TemporaryTree& tree) {
  const rlimit few{50, 50};
  ::setrlimit(RLIMIT_NPROC, &few);
  const ThreadLimit alone = read_thread_limit(tree.root());
  tree.write("proc/sys/kernel/threads-max", "48\n");
  const ThreadLimit less = read_thread_limit(tree.root());
  std::fprintf(stderr, "%s; %s\n", alone.explanation.c_str(), less.explanation.c_str());
  ::_exit(alone.threads_max == 25 && less.threads_max == 24 ? 0 : 1);
}

TEST(ThreadLimitDeathTest, IsHalfOfTheUsersProcesses) {
  const TemporaryTree tree;
  EXPECT_EXIT(limit_processes_of_the_user(tree), testing::ExitedWithCode(0),
              "^25 threads: half of RLIMIT_NPROC; 24 threads: half of the kernel's threads-max\n$");
}

TEST(ThreadLimit, ReadsThisMachine) {
  EXPECT_GE(read_thread_limit().threads_max, 1U);
}

}  // namespace
}  // namespace weir::os::limits_test
