// Child processes that are made by fork(2) and go on with the same program.
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

/// How a process has ended.
struct ProcessEnd {
  enum class How : std::uint8_t {
    exited,
    killed,   ///< by a signal
    unknown,  ///< somebody else in this process has waited for it
  };
  How how = How::exited;
  int code = 0;  ///< of the exit, or the signal's number
  bool well() const noexcept { return how == How::exited && code == 0; }
  bool killed_by(int signal) const noexcept { return how == How::killed && code == signal; }
  /// "exit status 1", "killed by signal 9 (Killed)"
  std::string to_string() const;
};

/// A child that is not waited for yet. When it goes, a child that still runs goes on.
/// Threads: one at a time.
class ChildProcess {
 public:
  int pid() const noexcept { return pid_; }
  /// Readable when it has ended.
  int get() const noexcept { return fd_.get(); }
  /// Nothing, when it has ended.
  void signal(int number) const noexcept;
  /// Waits for its end. Once.
  ProcessEnd wait() noexcept;

 private:
  friend Result<std::optional<ChildProcess>> fork_child();
  ChildProcess(int pid, Fd fd) noexcept : pid_(pid), fd_(std::move(fd)) {}
  int pid_;
  Fd fd_;  // a pidfd
};

/// Two processes return from it: the parent with its child, the child with nothing. The child is
/// killed when the thread that made it ends. Only where count_threads() is one: others would not
/// exist in the child, but their locks would. SIGCHLD is no longer ignored afterwards. Errors: the
/// kernel's (EAGAIN, ENOMEM); ENOSYS before Linux 5.3.
Result<std::optional<ChildProcess>> fork_child();

/// Threads of this process, but for a sanitizer's own; 0 where the kernel does not tell. One that
/// has been joined may be counted for another moment.
std::size_t count_threads();

/// A number that this process and the children that it forks afterwards see and change together.
/// Move-only. Threads: any.
class SharedNumber {
 public:
  static Result<SharedNumber> make();
  SharedNumber(SharedNumber&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  SharedNumber& operator=(SharedNumber&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~SharedNumber();

  int load() const noexcept { return value_->load(std::memory_order_acquire); }
  void store(int number) noexcept { value_->store(number, std::memory_order_release); }

 private:
  explicit SharedNumber(std::atomic<int>* value) noexcept : value_(value) {}
  std::atomic<int>* value_;
};

}  // namespace weir::os
