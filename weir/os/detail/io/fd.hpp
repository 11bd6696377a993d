// Fd owns a file descriptor. Other functions open pipes and event counters.
#pragma once

#include <utility>

#include "weir/base/result.hpp"

namespace weir::os {

/// An Fd owns one descriptor and closes it when destroyed.
/// Threads: one at a time.
class Fd {
 public:
  Fd() noexcept = default;
  /// Takes ownership of `descriptor`. A negative value means no descriptor.
  explicit Fd(int descriptor) noexcept : descriptor_(descriptor < 0 ? none : descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd taken(std::move(other));
    std::swap(descriptor_, taken.descriptor_);
    return *this;
  }
  ~Fd() { close(); }

  /// Returns the descriptor, which the Fd still owns, or -1.
  int get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return descriptor_ != none; }

  /// Transfers ownership of the descriptor to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, none); }

  /// Closes the descriptor now. Does nothing if the Fd is empty. An error of close(2) is ignored,
  /// because Linux frees the number in every case. A writer that needs its bytes on disk calls
  /// fsync(2) before. `errno` does not change.
  void close() noexcept;

 private:
  static constexpr int none = -1;
  int descriptor_ = none;
};

/// The effect of exec(2) on a descriptor.
enum class OnExec { close, keep };
/// Sets whether exec(2) closes `descriptor`. All descriptors that weir::os opens are close-on-exec.
/// This function is for inherited descriptors and for those that a child process inherits.
Result<> set_on_exec(int descriptor, OnExec what);

/// Opens /dev/null as standard input, output or error if they are closed. No descriptor that the
/// process opens later then gets their numbers and receives lines of the log. Child processes
/// inherit these descriptors.
/// Threads: call it before the process has a second thread.
void open_standard_descriptors() noexcept;

/// Makes an inherited descriptor non-blocking. Reads and writes then return EAGAIN instead of
/// waiting.
Result<> set_nonblocking(int descriptor);

/// Returns another descriptor of the same open file, close-on-exec.
Result<Fd> duplicate(int descriptor);

struct Pipe {
  Fd read_end;
  Fd write_end;
};

/// Opens a pipe(7) with both ends non-blocking and close-on-exec.
Result<Pipe> open_pipe();

/// Opens an eventfd(2) counter at zero, non-blocking and close-on-exec.
Result<Fd> open_event();

/// Adds one to an eventfd, which makes it readable. The call never waits. It cannot fail on an
/// eventfd, because a full counter is already readable.
/// Threads: any. It is safe in a signal handler.
void signal_event(int event) noexcept;

/// Resets the counter of an eventfd to zero. The counter may already be zero.
void drain_event(int event) noexcept;

}  // namespace weir::os
