// Tests of Fd ownership, of descriptor flags, and of eventfds.
#include "weir/os/detail/io/fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <type_traits>

namespace weir::os::fd_test {
namespace {

static_assert(!std::is_copy_constructible_v<Fd> && !std::is_copy_assignable_v<Fd>);
static_assert(std::is_nothrow_move_constructible_v<Fd> && sizeof(Fd) == sizeof(int));

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

bool readable(int descriptor) {
  pollfd wanted{descriptor, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLIN) != 0;
}

TEST(Fd, TheDestructorClosesTheDescriptor) {
  int number = -1;
  {
    const Fd event = open_event().value();
    number = event.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, MovingTransfersAndAssigningClosesTheOldOne) {
  Fd first = open_event().value();
  Fd second = open_event().value();
  const int kept = first.get();
  const int dropped = second.get();
  second = std::move(first);
  EXPECT_EQ(second.get(), kept);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): emptied by contract
  EXPECT_EQ(first.get(), -1);
  EXPECT_TRUE(is_open(kept));
  EXPECT_FALSE(is_open(dropped));
}

TEST(Fd, SelfAssignmentKeepsTheDescriptor) {
  Fd event = open_event().value();
  Fd& same = event;
  event = std::move(same);
  EXPECT_TRUE(is_open(event.get()));
}

TEST(Fd, ReleaseKeepsTheDescriptorOpen) {
  Fd event = open_event().value();
  const int number = event.release();
  EXPECT_FALSE(event);
  event.close();
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Fd, ANegativeNumberMeansNoDescriptor) {
  EXPECT_FALSE(Fd(-7));
  EXPECT_EQ(Fd(-7).get(), -1);
}

TEST(Fd, CloseKeepsErrno) {
  Fd event = open_event().value();
  errno = ENOSPC;
  event.close();
  EXPECT_EQ(errno, ENOSPC);
}

TEST(Fd, DescriptorsAreCloseOnExecAndNonBlocking) {
  const Pipe pipe = open_pipe().value();
  const Fd event = open_event().value();
  for (const int each : {pipe.read_end.get(), pipe.write_end.get(), event.get()}) {
    EXPECT_NE(::fcntl(each, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(each, F_GETFL) & O_NONBLOCK, 0);
  }
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(::write(pipe.write_end.get(), "x", 1), 1);
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(Fd, FlagsOfInheritedDescriptorsCanBeChanged) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  ASSERT_TRUE(set_on_exec(reader.get(), OnExec::close));
  EXPECT_NE(::fcntl(reader.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_TRUE(set_on_exec(reader.get(), OnExec::keep));
  EXPECT_EQ(::fcntl(reader.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_TRUE(set_nonblocking(reader.get()));
  EXPECT_NE(::fcntl(reader.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(set_nonblocking(-1).error(), system_error(EBADF));
  EXPECT_EQ(set_on_exec(-1, OnExec::close).error(), system_error(EBADF));
}

TEST(Fd, ADuplicateOutlivesTheOriginal) {
  Fd event = open_event().value();
  const Fd copy = duplicate(event.get()).value();
  EXPECT_NE(copy.get(), event.get());
  EXPECT_NE(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC, 0);
  signal_event(event.get());
  event.close();
  EXPECT_TRUE(readable(copy.get()));
  EXPECT_EQ(duplicate(-1).error(), system_error(EBADF));
}

TEST(Fd, ClosedStandardDescriptorsAreOpened) {
  const Fd kept = duplicate(STDIN_FILENO).value();
  Fd(STDIN_FILENO).close();
  errno = ERANGE;
  open_standard_descriptors();
  EXPECT_EQ(errno, ERANGE);
  EXPECT_TRUE(is_open(STDIN_FILENO));
  char byte = 0;
  EXPECT_EQ(::read(STDIN_FILENO, &byte, 1), 0) << "it is empty";
  open_standard_descriptors();
  EXPECT_EQ(::dup2(kept.get(), STDIN_FILENO), STDIN_FILENO);
}

/// Ends this (child) process with 0 if each standard descriptor can be used after it was closed,
/// also by child processes.
[[noreturn]] void reopen_standard_descriptors() {
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(each);
  open_standard_descriptors();
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(each, F_GETFD) != 0) ::_exit(1);
  }
  char byte = 0;
  if (::read(STDIN_FILENO, &byte, 1) != 0) ::_exit(2);
  for (const int each : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::write(each, "x", 1) != 1) ::_exit(3);
  }
  ::_exit(0);
}

TEST(FdDeathTest, EachStandardDescriptorIsOpenedAndInherited) {
  EXPECT_EXIT(reopen_standard_descriptors(), testing::ExitedWithCode(0), "");
}

TEST(Event, IsReadableFromSignalToDrain) {
  const Fd event = open_event().value();
  EXPECT_FALSE(readable(event.get()));
  drain_event(event.get());
  signal_event(event.get());
  signal_event(event.get());
  EXPECT_TRUE(readable(event.get()));
  drain_event(event.get());
  EXPECT_FALSE(readable(event.get()));
}

TEST(Event, CountsEachSignalOnce) {
  const Fd event = open_event().value();
  std::uint64_t count = 0;
  errno = ERANGE;
  signal_event(event.get());
  signal_event(event.get());
  ASSERT_EQ(::read(event.get(), &count, sizeof count), ssize_t{sizeof count});
  EXPECT_EQ(count, 2U);
  drain_event(event.get());  // already empty
  EXPECT_EQ(errno, ERANGE);
}

TEST(Event, AFullCounterIsNotAnError) {
  const Fd event = open_event().value();
  const std::uint64_t most = 0xfffffffffffffffeu;
  ASSERT_EQ(::write(event.get(), &most, sizeof most), ssize_t{sizeof most});
  errno = ERANGE;
  signal_event(event.get());
  EXPECT_EQ(errno, ERANGE);
  EXPECT_TRUE(readable(event.get()));
}

}  // namespace
}  // namespace weir::os::fd_test
