#include "weir/os/detail/process/thread_probe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>

#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/os/detail/process/parker.hpp"
#include "weir/os/test/scarce_descriptors.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::thread_probe_test {
namespace {

TEST(ThreadProbe, ReadsTheStateAfterTheName) {
  EXPECT_EQ(parse_thread_state("42 (weir-pool) R 1 42 0"), ThreadState::running);
  EXPECT_EQ(parse_thread_state("42 (a) S) D (b) S 1 42"), ThreadState::blocked);
  EXPECT_EQ(parse_thread_state("42 () D 1"), ThreadState::blocked);
  EXPECT_EQ(parse_thread_state("42 (x) T 1"), ThreadState::blocked);
  for (const char* const ended : {"42 (x) Z 1", "42 (x) X 1", "42 (x) x 1"}) {
    EXPECT_EQ(parse_thread_state(ended), ThreadState::unknown);
  }
  EXPECT_EQ(parse_thread_state("42 (S) R"), ThreadState::running);
  for (const char* const nonsense : {"", "42", "42 (x", "42 (x)", "42 (x) "}) {
    EXPECT_EQ(parse_thread_state(nonsense), ThreadState::unknown) << nonsense;
  }
}

TEST(ThreadProbe, TheCallingThreadRuns) {
  const ThreadProbe self = ThreadProbe::of_this_thread();
  EXPECT_EQ(self.state(), ThreadState::running);
  const Duration before = self.cpu_time();
  while (self.cpu_time() == before) {
  }
  EXPECT_GT(self.cpu_time(), before);
}

TEST(ThreadProbe, AnotherBlocksRunsAndEnds) {
  Parker rest;
  std::atomic<bool> spin = false;
  std::atomic<bool> end = false;
  std::atomic<bool> ready = false;
  std::optional<ThreadProbe> probe;
  std::thread thread([&] {
    probe = ThreadProbe::of_this_thread();
    ready.store(true, std::memory_order_release);
    while (!spin) rest.park();
    while (!end) {
    }
  });
  while (!ready.load(std::memory_order_acquire)) {
  }
  while (probe->state() != ThreadState::blocked) {
  }
  const Duration blocked = probe->cpu_time();
  spin = true;
  rest.unpark();
  while (probe->state() != ThreadState::running) {
  }
  while (probe->cpu_time() < blocked + 2ms) {
  }
  EXPECT_EQ(probe->state(), ThreadState::running);
  end = true;
  thread.join();
  // The kernel removes the thread a moment later. The loop ends when the probe reports its end.
  while (probe->state() != ThreadState::unknown || probe->cpu_time() != Duration(0)) {
  }
}

TEST(ThreadProbe, TheStateIsUnknownIfItCannotBeRead) {
  const TemporaryTree tree;
  const ThreadProbe self = ThreadProbe::of_this_thread();
  const std::string stat = "proc/self/task/" + std::to_string(::gettid()) + "/stat";
  tree.write(stat, "1 (x) R 1");
  errno = EINTR;  // of an earlier call
  EXPECT_EQ(self.state(tree.root()), ThreadState::running);
  tree.write(stat, "");
  EXPECT_EQ(self.state(tree.root()), ThreadState::unknown);
  ASSERT_TRUE(remove_path(tree.path(stat)));
  tree.write(stat + "/a folder", "");
  EXPECT_EQ(self.state(tree.root()), ThreadState::unknown);
  const DescriptorLimit none(0);
  EXPECT_EQ(self.state(), ThreadState::unknown);
}

TEST(ThreadProbe, ReadsOnlyTheClockWithoutProc) {
  const TemporaryTree empty;
  const ThreadProbe self = ThreadProbe::of_this_thread();
  EXPECT_EQ(self.state(empty.root()), ThreadState::unknown);
  EXPECT_GT(self.cpu_time(), Duration(0));
}

}  // namespace
}  // namespace weir::os::thread_probe_test
