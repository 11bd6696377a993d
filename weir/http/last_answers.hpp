// Streams that have said their last and stay open for a moment, so that the peer can hear it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"

namespace weir::http {

/// Keeps streams whose sending side is shut down until a time is over, or until others need the
/// place: a peer that still sends to a stream that was closed at once would be answered by a reset,
/// which may cost it the answer (RFC 9112 §9.6). Nobody reads from them and nobody waits for them.
/// Threads: the loop's. Lifetime: what is left is closed with this.
class LastAnswers : Timer {
 public:
  explicit LastAnswers(Loop& loop) noexcept : Timer(&expire), loop_(loop) {}

  /// Takes the oldest one's place if need be.
  void keep(tcp::Stream stream, Duration time) noexcept {
    std::optional<Kept>& place = kept_[next_];
    next_ = (next_ + 1) % kept_.size();
    place.emplace(Kept{std::move(stream), after(loop_.now(), time)});
    if (!armed()) loop_.timers().start(*this, place->until);
  }

 private:
  // Among the descriptors that are reserved for other things than connections.
  static constexpr std::size_t kept_max = 16;
  struct Kept {
    tcp::Stream stream;
    Instant until;
  };

  /// Closes those whose time is over; the rest wait for another turn of the timer.
  static void expire(Timer& self) {
    auto& answers = static_cast<LastAnswers&>(self);
    const Instant now = answers.loop_.now();
    Instant soonest = never;
    for (std::optional<Kept>& each : answers.kept_) {
      if (each && each->until <= now) each.reset();
      if (each) soonest = std::min(soonest, each->until);
    }
    answers.loop_.timers().start(answers, soonest);
  }

  Loop& loop_;
  std::array<std::optional<Kept>, kept_max> kept_;
  std::size_t next_ = 0;
};

}  // namespace weir::http
