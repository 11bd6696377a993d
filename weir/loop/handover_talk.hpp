// One side of a conversation between an older and a newer process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/handover_message.hpp"
#include "weir/os/fd.hpp"

namespace weir {

/// A connection on which HandoverMessages come and go. It blocks; an event can interrupt that.
/// Threads: one at a time. Lifetime: the event's owner outlives it.
class HandoverTalk {
 public:
  /// `interrupting`: an eventfd.
  HandoverTalk(os::Fd connection, int interrupting);

  enum class Heard {
    message,        ///< it is in message(), its descriptors in take_descriptors()
    interruption,   ///< the event was signalled, which is forgotten
    nothing,        ///< nothing in time
    end,            ///< the other process has gone
    garbage,        ///< what came is no message
    other_version,  ///< of a program that speaks another version
  };
  /// The next thing that happens before `until`. What was sent comes before the end.
  Heard hear(Instant until);
  /// The same without interruptions.
  Heard hear_undisturbed(Instant until);
  const HandoverMessage& message() const noexcept { return message_; }
  bool says(Heard heard, HandoverMessage::Kind kind) const noexcept {
    return heard == Heard::message && message_.kind == kind;
  }
  std::vector<os::Fd> take_descriptors() { return std::move(descriptors_); }

  /// Errors: EPIPE, ECONNRESET: the other process has gone; EAGAIN: it does not listen.
  Result<> say(const HandoverMessage& message, std::span<const int> descriptors = {});
  void refuse(std::string_view why);
  /// From now on whatever the other process says fails there. What it said before can be heard.
  void stop_listening() noexcept;
  int connection() const noexcept { return connection_.get(); }

 private:
  Heard receive();

  os::Fd connection_;
  int interrupting_;
  std::vector<std::byte> room_;
  HandoverMessage message_;
  std::vector<os::Fd> descriptors_;
};

/// What was heard instead of what was expected, for people.
std::string describe(HandoverTalk::Heard heard, const HandoverMessage& message);

/// Waits until `descriptor` is readable or `event` (an eventfd) was signalled, which is forgotten;
/// at most until then. Whether `descriptor` is.
enum class Woken { readable, interrupted, timed_out };
Woken wait_readable(int descriptor, int event, Instant until);

}  // namespace weir
