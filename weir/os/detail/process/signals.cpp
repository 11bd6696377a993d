// Blocks signals by mask and reads them through signalfd(2). SIGPIPE is blocked and not ignored,
// because a mask belongs to a thread, but a disposition affects all code of the process.
#include "weir/os/detail/process/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace weir::os {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int each : signals) ::sigaddset(&set, each);
  return set;
}

bool pipe_is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
}

/// Returns true if the program handles the signal itself.
bool has_handler(int signal) {
  struct sigaction action{};
  if (::sigaction(signal, nullptr, &action) != 0) return false;
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace

Result<SignalFd> SignalFd::open() {
  sigset_t stop = set_of({SIGINT, SIGTERM});
  if (!has_handler(SIGQUIT)) ::sigaddset(&stop, SIGQUIT);
  Fd fd(::signalfd(-1, &stop, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return fail(system_error(errno));
  const bool pipe_was_pending = pipe_is_pending();
  sigset_t blocked = stop;
  ::sigaddset(&blocked, SIGPIPE);
  sigset_t old_mask;
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &blocked, &old_mask); error != 0) {
    return fail(system_error(error));
  }
  if (::sigismember(&stop, SIGQUIT) == 1) ::sigaddset(&old_mask, SIGQUIT);
  return SignalFd(std::move(fd), old_mask, pipe_was_pending);
}

SignalFd::SignalFd(Fd fd, const sigset_t& old_mask, bool pipe_was_pending) noexcept
    : fd_(std::move(fd)), old_mask_(old_mask), pipe_was_pending_(pipe_was_pending) {}

SignalFd::~SignalFd() {
  if (!fd_) return;
  if (!pipe_was_pending_) {
    const sigset_t pipe = set_of({SIGPIPE});
    const timespec at_once{};
    while (::sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void block_file_size_signal() noexcept {
  const sigset_t blocked = set_of({SIGXFSZ});
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

std::optional<StopSignal> SignalFd::read() noexcept {
  signalfd_siginfo signal{};
  for (;;) {
    const auto count = ::read(fd_.get(), &signal, sizeof signal);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof signal) return std::nullopt;
    if (signal.ssi_signo == SIGQUIT) return StopSignal::quit;
    return signal.ssi_signo == SIGINT ? StopSignal::interrupt : StopSignal::terminate;
  }
}

}  // namespace weir::os
