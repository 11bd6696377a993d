// Where the processes of one service meet, of whatever kind the host has.
#pragma once

#include <memory>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/handover_talk.hpp"

namespace weir {

/// One process' side of it: its name stays, and belongs to the process that has taken over last;
/// the socket at which newer ones come goes from process to process.
/// Threads: one at a time, but for ring(). Lifetime: its host outlives it.
class HandoverPlace {
 public:
  virtual ~HandoverPlace() = default;

  /// For people.
  virtual std::string name() const = 0;
  /// What comes of going there: a talk with the older process; nullptr: there is none, and the
  /// place is this process' own. Errors: the host's.
  virtual Result<std::unique_ptr<HandoverTalk>> meet() = 0;
  /// The socket at which newer processes come, while this process has it.
  virtual const Descriptor& socket() const noexcept = 0;
  /// An older process has passed it on.
  virtual void set_socket(Descriptor socket) = 0;
  /// From now on the name is this process' to remove, or that of a newer one.
  virtual void own() noexcept = 0;
  virtual void disown() noexcept = 0;
  /// Closes the socket, and removes the name if that is still there and this process' own.
  virtual void leave() noexcept = 0;

  /// Waits until a newer process comes. nullptr: not so, or it was rung before.
  virtual std::unique_ptr<HandoverTalk> wait_for_newer() = 0;
  /// Waits until it is rung, or until then. Whether it was rung.
  virtual bool wait(Instant until) = 0;
  /// Interrupts whoever waits, or will wait next, here or in a talk. Any thread.
  virtual void ring() noexcept = 0;
};

}  // namespace weir
