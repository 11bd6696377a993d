// A thread that a host lends for work that may block, which a loop must never do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"

namespace weir {

/// What a HostThread does, one step after the other, so that a simulated host can take the steps
/// without a thread.
class ThreadWork {
 public:
  /// On the thread: for the first time soon after start(), and again when the moment that it has
  /// returned comes, or at once when wake() was called since it began. It may block; simulated, it
  /// takes no time. nullopt: the thread ends.
  virtual std::optional<Instant> step() noexcept = 0;

 protected:
  ~ThreadWork() = default;
};

/// Who has a CPU that several threads of the process want.
enum class ThreadRank : std::uint8_t {
  equal,   ///< a thread like others
  behind,  ///< stands back behind the loops, which take the CPU from it; see os::stand_back()
};

struct HostThreadOptions {
  /// Enough for the C library's resolver and for deep calls of one's own; and a thousand of them do
  /// not fill a machine whose memory is locked.
  static constexpr std::size_t stack_bytes_usual = std::size_t{1} << 20;

  std::string name;  ///< at most 15 bytes are seen
  ThreadRank rank = ThreadRank::equal;
  std::size_t stack_bytes = stack_bytes_usual;  ///< the kernel's or libc's least, if that is more
};

/// Made by Host::make_thread(). Threads: start() and the destructor one; the rest any, while the
/// object lives. Lifetime: its host and its work outlive it.
class HostThread {
 public:
  /// Waits until a step under way has returned; there is none afterwards. Not inside a step.
  virtual ~HostThread() = default;
  /// Once. Errors: the kernel's, where it has no thread left (EAGAIN); then nothing has begun.
  virtual Result<> start() = 0;
  /// Before start() it does nothing, for a first step will come anyway.
  virtual void wake() noexcept = 0;

  /// The CPU time that it has used; 0 where the host does not tell.
  virtual Duration cpu_time() noexcept = 0;
  /// What it is doing at this moment; see os::ThreadProbe.
  virtual os::ThreadState state() noexcept = 0;
};

}  // namespace weir
