// Child processes that fork(2) creates and that continue the same program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

/// The way in which a process ended.
struct ExitStatus {
  enum class Reason : std::uint8_t {
    exited,   ///< a normal exit
    killed,   ///< a signal
    unknown,  ///< other code of this process has already waited for the child
  };
  Reason reason = Reason::exited;
  int code = 0;  ///< the exit status, or the number of the signal
  bool succeeded() const noexcept { return reason == Reason::exited && code == 0; }
  bool killed_by(int signal) const noexcept { return reason == Reason::killed && code == signal; }
  /// Returns a text such as "exit status 1" or "killed by signal 9 (Killed)".
  std::string to_string() const;
};

/// A ChildProcess is a child for which wait() has not been called yet. Its destructor does not end
/// a running child.
/// Threads: one at a time.
class ChildProcess {
 public:
  int pid() const noexcept { return pid_; }
  /// Returns a descriptor that becomes readable when the child ends.
  int get() const noexcept { return fd_.get(); }
  /// Sends a signal to the child. Does nothing if the child has ended.
  void signal(int number) const noexcept;
  /// Waits for the end of the child. May be called once. get() returns -1 afterwards.
  ExitStatus wait() noexcept;

 private:
  friend Result<std::optional<ChildProcess>> fork_child();
  ChildProcess(int pid, Fd fd) noexcept : pid_(pid), fd_(std::move(fd)) {}
  int pid_;
  Fd fd_;  // a pidfd
};

/// Creates a child process. The kernel kills the child when the thread that created it ends. The
/// call is allowed only while count_threads() is one. Other threads would not exist in the child,
/// but the locks that they hold would. SIGCHLD is no longer ignored afterwards.
/// Returns: the child in the parent; nullopt in the child.
/// Errors: the kernel's (EAGAIN, ENOMEM); ENOSYS before Linux 5.3.
Result<std::optional<ChildProcess>> fork_child();

/// Returns the number of threads of this process, without those of a sanitizer; 0 on an error. A
/// joined thread may be counted for a short time.
std::size_t count_threads();

/// A SharedInt is a number in memory that this process shares with the children that it forks
/// afterwards. It is move-only.
/// Threads: any.
class SharedInt {
 public:
  static Result<SharedInt> make();
  SharedInt(SharedInt&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  SharedInt& operator=(SharedInt&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~SharedInt();

  int load() const noexcept { return value_->load(std::memory_order_acquire); }
  void store(int number) noexcept { value_->store(number, std::memory_order_release); }

 private:
  explicit SharedInt(std::atomic<int>* value) noexcept : value_(value) {}
  std::atomic<int>* value_;
};

}  // namespace weir::os
