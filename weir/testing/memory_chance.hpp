// Where a machine could do one thing or another: who decides what a simulated one does.
#pragma once

#include <cstddef>
#include <system_error>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir {

class MemoryStream;

/// Decides what the contracts of Backend and Host leave open. This one goes straight on each time:
/// at once, whole and in order. That of a World draws from its seed, and lets faults strike.
/// Threads: its host's one.
class MemoryChance {
 public:
  MemoryChance() = default;
  MemoryChance(const MemoryChance&) = delete;
  MemoryChance& operator=(const MemoryChance&) = delete;
  virtual ~MemoryChance() = default;

  /// An operation is about to begin, on `stream` unless it is an accept or a file's. What happens
  /// to the stream here has happened just before.
  virtual void beginning([[maybe_unused]] const Operation& operation,
                         [[maybe_unused]] MemoryStream* stream) {}
  /// It has finished, after `bytes` of a receive or send.
  virtual void finished([[maybe_unused]] const Operation& operation,
                        [[maybe_unused]] std::size_t bytes) {}

  /// Whether what can finish at once does so, rather than in a later wait().
  virtual bool at_once() { return true; }
  /// Whether what is cancelled and could finish at this moment finishes, or else is cancelled.
  virtual bool completes_when_cancelled() { return true; }
  /// How much of `most` bytes one call moves: 1 to `most`.
  virtual std::size_t part(std::size_t most) { return most; }
  /// Whether the next connection goes to the first of those who listen, rather than to another.
  virtual bool crowds() { return false; }
  /// Which of `count` comes next: 0 to `count` - 1.
  virtual std::size_t pick([[maybe_unused]] std::size_t count) { return 0; }
  /// Why accept(2) fails although somebody waits; no error: it does not.
  virtual std::error_code accept_failure() { return {}; }
  /// How often the datagram that is sent now gets to where it goes: 1, unless it is lost or
  /// doubled.
  virtual std::size_t datagram_copies() { return 1; }
  /// Whether nothing that its host does reaches anybody any more.
  virtual bool cut_off() { return false; }
  /// How long a handshake takes.
  virtual Duration connect_time() { return {}; }
  /// How much later than it could a thread takes its next step: what it does takes so long.
  virtual Duration step_time() { return {}; }
  /// Around what a thread does in a step.
  virtual void step_begins() {}
  virtual void step_ends() {}
  /// What one direction of the next connection holds, where that is `usual`.
  virtual std::size_t buffer_bytes(std::size_t usual) { return usual; }
};

}  // namespace weir
