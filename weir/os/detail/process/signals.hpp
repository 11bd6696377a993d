// The signals that ask a server to stop, read from a descriptor instead of interrupting code.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>

#include "weir/base/result.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

enum class StopSignal : std::uint8_t {
  interrupt,  ///< SIGINT: Ctrl-C
  terminate,  ///< SIGTERM: kill, a service manager
};

/// While it lives, SIGINT and SIGTERM wait to be read here instead of ending the process, and
/// SIGPIPE does nothing. That holds for the thread that opened it and for the threads started from
/// there meanwhile: open it on the main thread before there are others. With several of them in
/// one process, each signal is read by one.
/// When it goes, the opening thread's old mask comes back; SIGINT and SIGTERM that nobody has read
/// then act as they used to, a left SIGPIPE is forgotten.
/// Threads: destroyed on the thread that opened it; get() and read() on any one.
class SignalFd {
 public:
  static Result<SignalFd> open();

  SignalFd(SignalFd&&) noexcept = default;
  SignalFd& operator=(SignalFd&&) = delete;
  ~SignalFd();

  /// Readable while a signal waits.
  int get() const noexcept { return fd_.get(); }

  /// The next signal that waits, if any; does not wait for one.
  std::optional<StopSignal> read() noexcept;

 private:
  SignalFd(Fd fd, const sigset_t& old_mask, bool pipe_was_pending) noexcept;

  Fd fd_;
  sigset_t old_mask_;
  bool pipe_was_pending_;
};

/// From now on a write of this thread beyond the limit on the size of files (RLIMIT_FSIZE) is no
/// more than an error, EFBIG: the SIGXFSZ that comes with it, and would end the process, stays with
/// the thread. Threads that it starts afterwards inherit that.
void block_file_size_signal() noexcept;

}  // namespace weir::os
