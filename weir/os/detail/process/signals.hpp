// Signals to a server, which it reads from a descriptor instead of handling them.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>

#include "weir/base/result.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

enum class StopSignal : std::uint8_t {
  interrupt,  ///< SIGINT: Ctrl-C
  terminate,  ///< SIGTERM: kill(1) or a service manager
  quit,       ///< SIGQUIT: Ctrl-\, or kill(1) for a report of what runs
};

/// A SignalFd reads SIGINT, SIGTERM and SIGQUIT from a descriptor while it exists. They do not end
/// the process, and SIGPIPE has no effect. SIGQUIT is left alone if the program has a handler for
/// it. This applies to the thread that opened the SignalFd and to the threads that this thread
/// starts afterwards. The main thread should therefore open it before it starts other threads. If a
/// process has several, each signal is read by one of them.
///
/// The destructor restores the old signal mask of the opening thread. Unread signals then have
/// their former effect. A pending SIGPIPE is discarded, unless it was pending before open().
/// SIGQUIT stays blocked if the SignalFd has read it, so that a late request for a report does not
/// end the process with a core dump. A SignalFd that is opened later reads that request.
/// Threads: any for get() and read(); the opening thread for the destructor.
class SignalFd {
 public:
  static Result<SignalFd> open();

  SignalFd(SignalFd&&) noexcept = default;
  SignalFd& operator=(SignalFd&&) = delete;
  ~SignalFd();

  /// Returns a descriptor that is readable while a signal is pending.
  int get() const noexcept { return fd_.get(); }

  /// Returns the next pending signal, or nullopt. It does not wait.
  std::optional<StopSignal> read() noexcept;

 private:
  SignalFd(Fd fd, const sigset_t& old_mask, bool pipe_was_pending) noexcept;

  Fd fd_;
  sigset_t old_mask_;
  bool pipe_was_pending_;
};

/// Blocks SIGXFSZ on the calling thread. A write beyond the limit on file sizes (RLIMIT_FSIZE) then
/// fails with EFBIG and does not end the process. Threads that the calling thread starts afterwards
/// inherit the mask.
void block_file_size_signal() noexcept;

}  // namespace weir::os
