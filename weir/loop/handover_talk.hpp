// One side of what an older and a newer process say to each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/handover_message.hpp"

namespace weir {

/// A connection on which HandoverMessages come and go, of whatever kind the host has. What waits
/// here may be interrupted, see HandoverPlace::ring(). The destructor ends it.
/// Threads: one at a time. Lifetime: its place and its host outlive it.
class HandoverTalk {
 public:
  virtual ~HandoverTalk() = default;

  /// Why the other process is not to be talked to, for people; empty: it belongs to this user, or
  /// to root.
  virtual std::string distrust() = 0;

  enum class Heard : std::uint8_t {
    message,        ///< it is in message(), its sockets in take_sockets()
    interruption,   ///< the place was rung at, which is forgotten
    nothing,        ///< nothing in time
    end,            ///< the other process has gone
    garbage,        ///< what came is no message
    other_version,  ///< of a program that speaks another version
  };
  /// The next thing that happens before `until`. What was said comes before the end.
  virtual Heard hear(Instant until) = 0;
  /// The same without interruptions.
  Heard hear_undisturbed(Instant until);
  const HandoverMessage& message() const noexcept { return message_; }
  bool says(Heard heard, HandoverMessage::Kind kind) const noexcept {
    return heard == Heard::message && message_.kind == kind;
  }
  /// One for each that message() names.
  std::vector<Descriptor> take_sockets() noexcept { return std::move(sockets_); }

  /// With a socket for each that the message names; they stay open here. Does not wait.
  /// Errors: EPIPE, ECONNRESET: the other process has gone; EAGAIN: it does not listen.
  Result<> say(const HandoverMessage& message, std::span<const int> sockets = {}) {
    return send(message, sockets);
  }
  void refuse(std::string_view why);
  /// From now on whatever the other process says fails there. What it said before can be heard.
  virtual void stop_listening() noexcept = 0;

 protected:
  virtual Result<> send(const HandoverMessage& message, std::span<const int> sockets) = 0;

  HandoverMessage message_;
  std::vector<Descriptor> sockets_;
};

/// What was heard instead of what was expected, for people.
std::string describe(HandoverTalk::Heard heard, const HandoverMessage& message);

}  // namespace weir
