// Children by fork: who returns where, how they end, and what parent and child share.
#include "weir/os/detail/process/child_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace weir::os {
namespace {

/// A child that does `work`; its result is the exit status.
template <class Work>
ChildProcess child_that(Work work) {
  auto forked = fork_child();
  if (forked && !*forked) ::_exit(work());
  return std::move(**forked);
}

[[noreturn]] int sleep_for_ever() {
  for (;;) ::pause();
}

TEST(ChildProcess, EndsWithAnExitStatus) {
  ChildProcess child = child_that([] { return 7; });
  EXPECT_GT(child.pid(), 0);
  pollfd wanted{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  const ProcessEnd end = child.wait();
  EXPECT_EQ(end.how, ProcessEnd::How::exited);
  EXPECT_EQ(end.code, 7);
  EXPECT_FALSE(end.well());
  EXPECT_EQ(end.to_string(), "exit status 7");
  child.signal(SIGKILL);  // nobody is there
}

TEST(ChildProcess, OrByASignal) {
  ChildProcess child = child_that(sleep_for_ever);
  pollfd wanted{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0) << "it runs";
  child.signal(SIGKILL);
  const ProcessEnd end = child.wait();
  EXPECT_TRUE(end.killed_by(SIGKILL));
  EXPECT_FALSE(end.well());
  EXPECT_EQ(end.to_string(), "killed by signal 9 (Killed)");
}

TEST(ChildProcess, OrAsSomebodyElseKnowsWhoHasWaitedForIt) {
  ChildProcess child = child_that([] { return 0; });
  ASSERT_EQ(::waitpid(child.pid(), nullptr, 0), child.pid());
  const ProcessEnd end = child.wait();
  EXPECT_EQ(end.how, ProcessEnd::How::unknown);
  EXPECT_FALSE(end.well());
  EXPECT_EQ(end.to_string(), "nobody knows how");
}

TEST(ChildProcess, EndsWithItsParent) {
  Pipe pipe = open_pipe().value();
  ChildProcess parent = child_that([&] {
    // It holds the writing end, and waits.
    ChildProcess child = child_that(sleep_for_ever);
    return child.pid() > 0 ? 0 : 1;
  });
  EXPECT_EQ(parent.wait().code, 0);
  pipe.write_end.close();
  pollfd wanted{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  EXPECT_NE(wanted.revents & POLLHUP, 0) << "nobody has the writing end any more";
}

TEST(ChildProcess, SeesTheNumberThatItShares) {
  auto shared = SharedNumber::make();
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

TEST(CountThreads, CountsThem) {
  const std::size_t before = count_threads();
  ASSERT_GE(before, 1U);
  std::jthread another([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_EQ(count_threads(), before + 1);
}

}  // namespace
}  // namespace weir::os
