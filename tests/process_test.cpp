// Tests the harness: it must report the output, the end and the resource use of a child
// correctly.
#include "tests/process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>

namespace weir::tests::process_test {
namespace {

using std::chrono::milliseconds;

Process shell(const std::string& script) {
  return Process("/bin/sh", {"-c", script});
}

TEST(Process, CapturesBothStreamsAndTheStatus) {
  Process process = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(process.wait_for_exit(), 3);
  EXPECT_EQ(process.output(), "out\n");
  EXPECT_EQ(process.errors(), "err\n");
  EXPECT_EQ(process.wait_for_exit(), 3) << "a second call returns the same";
  EXPECT_EQ(process.descriptors() + process.threads() + process.resident_bytes(), 0u);
}

TEST(Process, TakesMoreOutputThanAPipeHolds) {
  Process process = shell("i=0; while [ $i -lt 3000 ]; do printf '%100s' x; i=$((i+1)); done");
  EXPECT_EQ(process.wait_for_exit(), 0);
  EXPECT_EQ(process.output().size(), 300'000u);
}

TEST(Process, WaitsForAPort) {
  {
    const Process talks_on =
        shell("echo 'hello is listening on 0.0.0.0:8080, 2 cores'; exec cat /dev/zero");
    EXPECT_EQ(talks_on.wait_for_port(), 8080);
  }
  const Process second = shell("echo 'weir: listening on [::]:41234' >&2; exec sleep 60");
  EXPECT_EQ(second.wait_for_port(), 41234);
  const Process ended = shell("echo 'cannot listen'");
  EXPECT_EQ(ended.wait_for_port(), std::nullopt);
  const Process wrong = shell("echo 'listening on nothing'");
  EXPECT_EQ(wrong.wait_for_port(), std::nullopt);
}

TEST(Process, WaitingEndsWhenTimeIsUp) {
  Process process = shell("echo here; exec sleep 60");
  EXPECT_TRUE(process.wait_for("here"));
  EXPECT_FALSE(process.wait_for("there", milliseconds(20)));
  EXPECT_EQ(process.wait_for_port(milliseconds(20)), std::nullopt);
  EXPECT_EQ(process.wait_for_exit(milliseconds(20)), std::nullopt);
}

TEST(Process, ReportsTheSignalThatEndedAProcess) {
  Process killed = shell("exec sleep 60");
  killed.signal(SIGTERM);
  EXPECT_EQ(killed.wait_for_exit(), 128 + SIGTERM);
  killed.signal(SIGTERM);
  Process trapping = shell("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(trapping.wait_for("ready"));
  trapping.signal(SIGINT);
  EXPECT_EQ(trapping.wait_for_exit(), 7);
}

TEST(Process, TheDestructorKillsTheProcess) {
  pid_t pid = 0;
  {
    const Process process = shell("trap '' TERM; exec sleep 60");
    pid = process.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Process, InheritsNoDescriptorsAndCountsItsOwn) {
  const os::Pipe leak = os::open_pipe().value();
  ASSERT_TRUE(os::set_on_exec(leak.read_end.get(), os::OnExec::keep));
  // The shell has three streams, and opens one more descriptor.
  const Process process = shell("exec 9</dev/null; echo ready; exec sleep 60");
  ASSERT_TRUE(process.wait_for("ready"));
  EXPECT_TRUE(eventually([&] { return process.descriptors() == 4; }, std::chrono::seconds(5)))
      << process.descriptors();
  EXPECT_EQ(process.sockets(), 0u);
  EXPECT_EQ(process.threads(), 1u);
  // A program that was executed just now has one page.
  EXPECT_TRUE(eventually([&] { return process.resident_bytes() > 4096; }));
}

TEST(Process, AMissingProgramThrows) {
  EXPECT_THROW(Process("/no/such/program"), std::runtime_error);
}

TEST(Eventually, ChecksAgainUntilTimeIsUp) {
  int looks = 0;
  EXPECT_TRUE(eventually([&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
  EXPECT_FALSE(eventually([] { return false; }, milliseconds(20)));
}

}  // namespace
}  // namespace weir::tests::process_test
