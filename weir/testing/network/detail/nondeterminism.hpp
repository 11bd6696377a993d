// The decisions that the contracts of a simulated platform leave open.
#pragma once

#include <cstddef>
#include <system_error>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir {

class MemoryStream;

/// A Nondeterminism decides what the contracts of Backend and Platform leave open. This base
/// class makes everything immediate, complete and in order. A World derives a class that draws
/// the decisions from its seed and injects faults.
/// Threads: that of its platform.
class Nondeterminism {
 public:
  Nondeterminism() = default;
  Nondeterminism(const Nondeterminism&) = delete;
  Nondeterminism& operator=(const Nondeterminism&) = delete;
  virtual ~Nondeterminism() = default;

  /// Called just before an operation begins. `stream` is its stream; nullptr for an accept and
  /// for a file. A change that this function makes to the stream has happened before the
  /// operation.
  virtual void on_begin([[maybe_unused]] const loop::Operation& operation,
                        [[maybe_unused]] MemoryStream* stream) {}
  /// Called after an operation has finished. `bytes` is the number of bytes that it transferred.
  virtual void on_finish([[maybe_unused]] const loop::Operation& operation,
                         [[maybe_unused]] std::size_t bytes) {}

  /// Returns true if an operation that can finish immediately does so, rather than in a later
  /// wait().
  virtual bool completes_immediately() { return true; }
  /// Returns true if a cancelled operation that could finish at this moment finishes, rather than
  /// being cancelled.
  virtual bool completes_when_cancelled() { return true; }
  /// Returns how many of `most` bytes one call moves: 1 to `most`.
  virtual std::size_t transfer_size(std::size_t most) { return most; }
  /// Returns true if the next connection goes to the first of several listeners.
  virtual bool picks_first_listener() { return false; }
  /// Returns the index of the next of `count` candidates: 0 to `count` - 1.
  virtual std::size_t pick([[maybe_unused]] std::size_t count) { return 0; }
  /// Returns the error of an accept(2) for which a connection waits; no error if it does not
  /// fail.
  virtual std::error_code accept_error() { return {}; }
  /// Returns the error of a read, write or sync of an open file; no error if it does not fail.
  virtual std::error_code file_error() { return {}; }
  /// Returns how often the datagram that is sent now arrives: 1, unless it is lost or doubled.
  virtual std::size_t datagram_copies() { return 1; }
  /// Returns true if nothing that the platform does reaches another host or process any more.
  virtual bool is_isolated() { return false; }
  /// Returns the duration of a handshake.
  virtual Duration connect_delay() { return {}; }
  /// Returns the delay of the next step of a thread; it stands for the duration of the step.
  virtual Duration step_delay() { return {}; }
  /// Returns the end of a pause of the process. No step of a thread begins before it.
  virtual Instant paused_until() const noexcept { return Instant::min(); }
  /// Called around each step of a thread.
  virtual void on_step_begin() {}
  virtual void on_step_end() {}
  /// Returns the buffer size of each direction of the next connection; `usual` is the configured
  /// size.
  virtual std::size_t buffer_bytes(std::size_t usual) { return usual; }
};

}  // namespace weir
