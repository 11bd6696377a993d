// Tests of forked children: how they end, and the memory that they share with their parent.
#include "weir/os/detail/process/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/scarce_descriptors.hpp"

namespace weir::os::child_process_test {
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

TEST(ChildProcess, GetsTheGivenSignal) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1}) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    ChildProcess child = child_that([signal, &pipe] {
      // This process may ignore or block the signal, and the child inherits that.
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, signal);
      std::signal(signal, SIG_DFL);
      ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
      return ::write(pipe[1], "x", 1) == 1 ? sleep_forever() : 1;
    });
    char ready = 0;
    EXPECT_EQ(::read(pipe[0], &ready, 1), 1);
    child.signal(0);  // only checks that the child exists
    child.signal(signal);
    EXPECT_TRUE(child.wait().killed_by(signal)) << signal;
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

TEST(ChildProcess, IsWaitedForUntilItEnds) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ChildProcess child = child_that([&pipe] {
    ::close(pipe[1]);
    char byte = 0;
    return ::read(pipe[0], &byte, 1) == 0 ? 7 : 8;  // returns when all writers have closed the pipe
  });
  {
    const std::jthread closing([&pipe] { ::close(pipe[1]); });
    EXPECT_EQ(child.wait().code, 7);
  }
  ::close(pipe[0]);
}

TEST(ChildProcess, EndsUnknownIfOtherCodeHasWaited) {
  ChildProcess child = child_that([] { return 0; });
  ASSERT_EQ(::waitpid(child.pid(), nullptr, 0), child.pid());
  const ExitStatus end = child.wait();
  EXPECT_EQ(end.reason, ExitStatus::Reason::unknown);
  EXPECT_EQ(end.code, 0);
  EXPECT_FALSE(end.succeeded());
  EXPECT_EQ(end.to_string(), "exit status unknown");
}

TEST(ExitStatus, TellsSuccessFromExitsAndSignals) {
  using Reason = ExitStatus::Reason;
  struct {
    ExitStatus status;
    bool succeeded;
    bool killed_by_9;
    const char* text;
  } const cases[] = {
      {{}, true, false, "exit status 0"},
      {{Reason::exited, 0}, true, false, "exit status 0"},
      {{Reason::exited, 9}, false, false, "exit status 9"},
      {{Reason::killed, 0}, false, false, "killed by signal 0"},
      {{Reason::killed, 9}, false, true, "killed by signal 9 (Killed)"},
      {{Reason::killed, 15}, false, false, "killed by signal 15 (Terminated)"},
      {{Reason::killed, 200}, false, false, "killed by signal 200"},
      {{Reason::unknown, 0}, false, false, "exit status unknown"},
      {{Reason::unknown, 9}, false, false, "exit status unknown"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(each.status.to_string(), each.text);
    EXPECT_EQ(each.status.succeeded(), each.succeeded) << each.text;
    EXPECT_EQ(each.status.killed_by(9), each.killed_by_9) << each.text;
  }
}

TEST(ChildProcess, HasAnExitStatusEvenIfSignalsOfChildrenWereIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  ChildProcess child = child_that([] { return 7; });
  EXPECT_EQ(child.wait().code, 7);
  EXPECT_EQ(std::signal(SIGCHLD, before), SIG_DFL);
}

TEST(ChildProcess, KeepsAHandlerOfSignalsOfChildren) {
  const auto handler = [](int) {};
  const auto before = std::signal(SIGCHLD, handler);
  ChildProcess child = child_that([] { return 0; });
  EXPECT_TRUE(child.wait().succeeded());
  EXPECT_EQ(std::signal(SIGCHLD, before), static_cast<void (*)(int)>(handler));
}

TEST(ChildProcess, ClosesItsDescriptorAfterTheEnd) {
  const int before = lowest_free_descriptor();
  ChildProcess child = child_that([] { return 0; });
  EXPECT_EQ(child.get(), before);
  EXPECT_TRUE(child.wait().succeeded());
  EXPECT_EQ(child.get(), -1);
  EXPECT_EQ(lowest_free_descriptor(), before);
}

TEST(ChildProcess, DoesNotWriteBufferedOutputTwice) {
  const Pipe pipe = open_pipe().value();
  std::FILE* const file = ::fdopen(::dup(pipe.write_end.get()), "w");
  std::fputs("once", file);
  ChildProcess child = child_that([&] { return std::fflush(file); });
  EXPECT_EQ(child.wait().code, 0);
  std::fclose(file);
  std::array<char, 16> text{};
  EXPECT_EQ(::read(pipe.read_end.get(), text.data(), text.size()), 4);
}

TEST(ChildProcess, LeavesNoChildBehindWithoutAFreeDescriptor) {
  {
    const DescriptorLimit none(0);
    const auto forked = fork_child();
    if (forked && !*forked) ::_exit(0);  // the child, if it runs before its end
    ASSERT_FALSE(forked);
    EXPECT_EQ(forked.error(), system_error(EMFILE));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// Ends this (child) process with 0 if a kernel without pidfd_open(2) leaves no child behind.
[[noreturn]] void fork_without_pidfd() {
  if (!deny({SYS_pidfd_open, 1, 0}, ENOSYS)) ::_exit(2);
  const auto forked = fork_child();
  if (forked && !*forked) sleep_forever();
  if (forked || forked.error() != system_error(ENOSYS)) ::_exit(3);
  ::_exit(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 4);
}

TEST(ChildProcessDeathTest, LeavesNoChildBehindOnAKernelWithoutPidfds) {
  EXPECT_EXIT(fork_without_pidfd(), testing::ExitedWithCode(0), "");
}

/// Ends this (child) process with 0 if a failed fork(2) is an error, or with 1 if it cannot fail
/// here.
[[noreturn]] void fork_without_processes() {
  if (!deny_fork()) ::_exit(1);
  const int free = lowest_free_descriptor();
  const auto forked = fork_child();
  if (forked) ::_exit(2);
  ::_exit(forked.error() == system_error(EAGAIN) && lowest_free_descriptor() == free ? 0 : 3);
}

bool ends_with_0_or_1(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) <= 1;
}

TEST(ChildProcessDeathTest, AFailedForkIsAnError) {
  EXPECT_EXIT(fork_without_processes(), ends_with_0_or_1, "");
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

/// Returns the number of anonymous shared mappings of this process.
std::size_t shared_mappings() {
  const std::string maps = read_text_file("/proc/self/maps").value();
  std::size_t count = 0;
  for (auto at = maps.find("/dev/zero"); at != maps.npos; at = maps.find("/dev/zero", at + 1)) {
    ++count;
  }
  return count;
}

TEST(SharedInt, ReturnsItsMemory) {
  const std::size_t before = shared_mappings();
  {
    SharedInt first = SharedInt::make().value();
    first.store(1);
    EXPECT_EQ(shared_mappings(), before + 1);
    SharedInt second = std::move(first);
    EXPECT_EQ(second.load(), 1);
    SharedInt third = SharedInt::make().value();
    third.store(3);
    EXPECT_EQ(shared_mappings(), before + 2);
    third = std::move(second);
    EXPECT_EQ(third.load(), 1);
  }
  EXPECT_EQ(shared_mappings(), before);
}

/// Ends this (child) process with 0 if there is no memory for a SharedInt.
[[noreturn]] void share_without_memory() {
  if (!deny({SYS_mmap, 1, sizeof(int)}, ENOMEM)) ::_exit(2);
  const auto shared = SharedInt::make();
  ::_exit(!shared && shared.error() == system_error(ENOMEM) ? 0 : 3);
}

TEST(SharedIntDeathTest, AMissingMappingIsAnError) {
  EXPECT_EXIT(share_without_memory(), testing::ExitedWithCode(0), "");
}

TEST(CountThreads, IsZeroIfTheyCannotBeCounted) {
  const DescriptorLimit none(0);
  EXPECT_EQ(count_threads(), 0U);
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
}  // namespace weir::os::child_process_test
