// File descriptors with an owner, and the kernel objects that are nothing but a descriptor.
#pragma once

#include <utility>

#include "weir/base/result.hpp"

namespace weir::os {

/// Owns one descriptor and closes it when destroyed. Threads: one at a time.
class Fd {
 public:
  Fd() noexcept = default;
  /// Takes over `descriptor`; a negative one means none.
  explicit Fd(int descriptor) noexcept : descriptor_(descriptor < 0 ? none : descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd taken(std::move(other));
    std::swap(descriptor_, taken.descriptor_);
    return *this;
  }
  ~Fd() { close(); }

  /// The descriptor, still owned here, or -1.
  int get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return descriptor_ != none; }

  /// Gives the descriptor to the caller, who closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, none); }

  /// Closes now; nothing to do when empty. What close(2) reports is dropped: Linux frees the number
  /// in every case, and a writer that must know whether its bytes arrived calls fsync(2) first.
  /// `errno` is left as it was.
  void close() noexcept;

 private:
  static constexpr int none = -1;
  int descriptor_ = none;
};

/// Whether exec(2) closes `descriptor`. Everything opened by weir::os is close-on-exec already;
/// this is for inherited descriptors, and for one that a child shall have.
enum class OnExec { close, keep };
Result<> set_on_exec(int descriptor, OnExec what);

/// Opens /dev/null as standard input, output or error where those are closed, so that none of what
/// the process opens later gets their numbers, and lines that are meant for the log. Children
/// inherit it. Call it before there are other threads.
void open_standard_descriptors() noexcept;

/// Makes reads and writes on an inherited descriptor return EAGAIN instead of waiting.
Result<> set_nonblocking(int descriptor);

/// Another number for the same open file, close-on-exec.
Result<Fd> duplicate(int descriptor);

struct Pipe {
  Fd read_end;
  Fd write_end;
};

/// A pipe(7), both ends non-blocking and close-on-exec.
Result<Pipe> open_pipe();

/// An eventfd(2) counter at zero, non-blocking and close-on-exec.
Result<Fd> open_event();

/// Adds one to an eventfd, which makes it readable. Any thread; safe in a signal handler. Never
/// waits and cannot fail on an eventfd: a full counter is readable already.
void signal_event(int event) noexcept;

/// Sets an eventfd's counter back to zero. Fine when it is zero.
void drain_event(int event) noexcept;

}  // namespace weir::os
