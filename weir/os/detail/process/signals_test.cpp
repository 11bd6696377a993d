// Tests that signals are read in this thread and later ones, and that the old mask is restored.
#include "weir/os/detail/process/signals.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "weir/os/test/scarce_descriptors.hpp"

namespace weir::os::signals_test {
namespace {

static_assert(!std::is_copy_constructible_v<SignalFd>);

bool readable(const SignalFd& signals, int milliseconds = 0) {
  pollfd wanted{signals.get(), POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) == 1;
}

bool blocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

void unblock(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

TEST(SignalFd, ReadsSignalsThatWouldEndTheProcess) {
  SignalFd signals = SignalFd::open().value();
  EXPECT_NE(::fcntl(signals.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(readable(signals));
  EXPECT_FALSE(signals.read());
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(readable(signals, 5000));
  EXPECT_EQ(signals.read(), StopSignal::terminate);
  ::kill(::getpid(), SIGINT);
  ASSERT_TRUE(readable(signals, 5000));
  EXPECT_EQ(signals.read(), StopSignal::interrupt);
  ::kill(::getpid(), SIGQUIT);
  ASSERT_TRUE(readable(signals, 5000));
  EXPECT_EQ(signals.read(), StopSignal::quit);
  EXPECT_FALSE(signals.read());
}

TEST(SignalFd, LeavesSigquitToAHandlerOfTheProgram) {
  unblock(SIGQUIT);  // another test in this process has a SignalFd
  static volatile std::sig_atomic_t handled = 0;
  const auto before = ::signal(SIGQUIT, [](int) { handled = 1; });
  {
    SignalFd signals = SignalFd::open().value();
    EXPECT_FALSE(blocked(SIGQUIT));
    ::raise(SIGQUIT);
    EXPECT_EQ(handled, 1);
    EXPECT_FALSE(signals.read());
  }
  // Shells ignore SIGQUIT in programs that they start in the background.
  ::signal(SIGQUIT, SIG_IGN);
  {
    SignalFd signals = SignalFd::open().value();
    ::kill(::getpid(), SIGQUIT);
    EXPECT_TRUE(readable(signals, 5000));
    EXPECT_EQ(signals.read(), StopSignal::quit);
  }
  ::signal(SIGQUIT, before);
}

TEST(SignalFd, CoversThreadsThatAreStartedLater) {
  SignalFd signals = SignalFd::open().value();
  std::thread([&] {
    EXPECT_TRUE(blocked(SIGINT) && blocked(SIGTERM) && blocked(SIGPIPE));
    ::kill(::getpid(), SIGINT);
    ASSERT_TRUE(readable(signals, 5000));
    EXPECT_EQ(signals.read(), StopSignal::interrupt);
  }).join();
}

TEST(SignalFd, BlocksNoOtherSignals) {
  const SignalFd signals = SignalFd::open().value();
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool covered =
        signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGPIPE;
    EXPECT_EQ(blocked(signal), covered) << signal;
  }
}

TEST(SignalFd, RestoresTheOldMask) {
  ASSERT_FALSE(blocked(SIGINT) || blocked(SIGTERM) || blocked(SIGPIPE));
  sigset_t usr1;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
  {
    const SignalFd signals = SignalFd::open().value();
    EXPECT_TRUE(blocked(SIGINT) && blocked(SIGTERM) && blocked(SIGPIPE) && blocked(SIGUSR1));
    const SignalFd second = SignalFd::open().value();
  }
  EXPECT_FALSE(blocked(SIGINT) || blocked(SIGTERM) || blocked(SIGPIPE));
  EXPECT_TRUE(blocked(SIGUSR1));
  ::pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
}

TEST(SignalFd, KeepsSigquitBlockedForTheNextOne) {
  unblock(SIGQUIT);
  {
    const SignalFd signals = SignalFd::open().value();
  }
  EXPECT_TRUE(blocked(SIGQUIT));
  ::kill(::getpid(), SIGQUIT);
  {
    SignalFd next = SignalFd::open().value();
    ASSERT_TRUE(readable(next, 5000));
    EXPECT_EQ(next.read(), StopSignal::quit);
  }
  const auto before = ::signal(SIGQUIT, [](int) {});
  unblock(SIGQUIT);
  {
    const SignalFd signals = SignalFd::open().value();
  }
  EXPECT_FALSE(blocked(SIGQUIT)) << "the program handles it";
  ::signal(SIGQUIT, before);
}

TEST(SignalFd, MovingKeepsOneOwner) {
  {
    SignalFd first = SignalFd::open().value();
    SignalFd second = std::move(first);
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(second.read(), StopSignal::interrupt);
    EXPECT_TRUE(blocked(SIGINT));
  }
  EXPECT_FALSE(blocked(SIGINT));
}

TEST(SignalFd, AMovedOneDoesNotRestoreTheMask) {
  std::optional<SignalFd> kept;
  {
    SignalFd opened = SignalFd::open().value();
    kept.emplace(std::move(opened));
  }
  EXPECT_TRUE(blocked(SIGINT) && blocked(SIGTERM) && blocked(SIGPIPE));
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(kept->read(), StopSignal::terminate);
  kept.reset();
  EXPECT_FALSE(blocked(SIGINT) || blocked(SIGTERM) || blocked(SIGPIPE));
}

TEST(SignalFd, ABrokenPipeThatWasPendingBeforeStaysPending) {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &pipe, nullptr), 0);
  for (const bool was_pending : {true, false}) {
    if (was_pending) ::pthread_kill(::pthread_self(), SIGPIPE);
    {
      const SignalFd signals = SignalFd::open().value();
      ::pthread_kill(::pthread_self(), SIGPIPE);
    }
    const timespec at_once{};
    EXPECT_EQ(::sigtimedwait(&pipe, nullptr, &at_once), was_pending ? SIGPIPE : -1);
  }
  ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr), 0);
}

TEST(SignalFd, ChangesNothingWithoutAFreeDescriptor) {
  const DescriptorLimit none(0);
  const auto opened = SignalFd::open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), system_error(EMFILE));
  EXPECT_FALSE(blocked(SIGINT) || blocked(SIGTERM) || blocked(SIGPIPE));
}

TEST(SignalFd, MayBeDescriptorZero) {
  const FreeDescriptorZero free;
  {
    SignalFd signals = SignalFd::open().value();
    EXPECT_EQ(signals.get(), 0);
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(signals.read(), StopSignal::terminate);
  }
  EXPECT_FALSE(blocked(SIGTERM));
}

TEST(SignalFd, ABrokenPipeIsAnErrorAndDoesNotEndTheProcessLater) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  {
    const SignalFd signals = SignalFd::open().value();
    EXPECT_EQ(::write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  ::close(ends[1]);
  EXPECT_FALSE(blocked(SIGPIPE));
}

/// Ends this (child) process with the error of a write beyond the limit, unless a signal ends it.
[[noreturn]] void write_beyond_the_limit(bool blocked) {
  constexpr rlimit nothing{0, 0};
  ::setrlimit(RLIMIT_CORE, &nothing);
  if (blocked) block_file_size_signal();
  const int file = ::memfd_create("file", MFD_CLOEXEC);
  if (file < 0 || ::setrlimit(RLIMIT_FSIZE, &nothing) != 0) ::_exit(1);
  ::_exit(::write(file, "x", 1) < 0 ? errno : 0);
}

TEST(FileSizeSignalDeathTest, EndsTheProcessUnlessItIsBlocked) {
  EXPECT_EXIT(write_beyond_the_limit(false), testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_EXIT(write_beyond_the_limit(true), testing::ExitedWithCode(EFBIG), "");
}

TEST(SignalFdDeathTest, AnUnreadSignalTakesEffectAfterwards) {
  EXPECT_EXIT(
      {
        {
          const SignalFd signals = SignalFd::open().value();
          ::kill(::getpid(), SIGTERM);
        }
        ::_exit(3);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalFdDeathTest, ALateSigquitDoesNotEndTheProcess) {
  EXPECT_EXIT(
      {
        unblock(SIGQUIT);
        {
          const SignalFd signals = SignalFd::open().value();
          ::kill(::getpid(), SIGQUIT);
        }
        ::kill(::getpid(), SIGQUIT);
        ::_exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace weir::os::signals_test
