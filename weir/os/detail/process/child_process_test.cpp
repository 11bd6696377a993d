// Tests of forked children: how they end, and the memory that they share with their parent.
#include "weir/os/detail/process/child_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace weir::os {
namespace {

/// Forks a child that runs `work` and exits with its result.
template <class Work>
ChildProcess child_that(Work work) {
  auto forked = fork_child();
  if (forked && !*forked) ::_exit(work());
  return std::move(**forked);
}

[[noreturn]] int sleep_forever() {
  for (;;) ::pause();
}

TEST(ChildProcess, EndsWithAnExitStatus) {
  ChildProcess child = child_that([] { return 7; });
  EXPECT_GT(child.pid(), 0);
  pollfd wanted{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  const ExitStatus end = child.wait();
  EXPECT_EQ(end.reason, ExitStatus::Reason::exited);
  EXPECT_EQ(end.code, 7);
  EXPECT_FALSE(end.succeeded());
  EXPECT_EQ(end.to_string(), "exit status 7");
  child.signal(SIGKILL);  // no effect on an ended child
}

TEST(ChildProcess, EndsByASignal) {
  ChildProcess child = child_that(sleep_forever);
  pollfd wanted{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0) << "the child runs";
  child.signal(SIGKILL);
  const ExitStatus end = child.wait();
  EXPECT_TRUE(end.killed_by(SIGKILL));
  EXPECT_FALSE(end.succeeded());
  EXPECT_EQ(end.to_string(), "killed by signal 9 (Killed)");
}

TEST(ChildProcess, EndsUnknownIfOtherCodeHasWaited) {
  ChildProcess child = child_that([] { return 0; });
  ASSERT_EQ(::waitpid(child.pid(), nullptr, 0), child.pid());
  const ExitStatus end = child.wait();
  EXPECT_EQ(end.reason, ExitStatus::Reason::unknown);
  EXPECT_FALSE(end.succeeded());
  EXPECT_EQ(end.to_string(), "exit status unknown");
}

TEST(ChildProcess, EndsWithItsParent) {
  Pipe pipe = open_pipe().value();
  ChildProcess parent = child_that([&] {
    // The child keeps the writing end open and waits.
    ChildProcess child = child_that(sleep_forever);
    return child.pid() > 0 ? 0 : 1;
  });
  EXPECT_EQ(parent.wait().code, 0);
  pipe.write_end.close();
  pollfd wanted{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  EXPECT_NE(wanted.revents & POLLHUP, 0) << "the last writing end is closed";
}

TEST(ChildProcess, SharesANumberWithItsParent) {
  auto shared = SharedInt::make();
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->load(), 0);
  shared->store(1);
  ChildProcess child = child_that([&] {
    const int seen = shared->load();
    shared->store(2);
    return seen;
  });
  EXPECT_EQ(child.wait().code, 1);
  EXPECT_EQ(shared->load(), 2);
}

TEST(CountThreads, CountsTheThreadsOfTheProcess) {
  const std::size_t before = count_threads();
  ASSERT_GE(before, 1U);
  std::jthread another([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_EQ(count_threads(), before + 1);
}

}  // namespace
}  // namespace weir::os
