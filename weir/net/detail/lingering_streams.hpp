// Streams that have sent their last byte and stay open for a moment, so that the peer can read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"

namespace weir {

/// Keeps streams whose sending side is shut down, until their time is over or a newer stream needs
/// the entry. A peer that still sends to a closed stream gets a reset, and may then lose the
/// response (RFC 9112 §9.6). No task reads from these streams or waits for them.
/// Threads: the loop's.
/// Lifetime: the destructor closes the streams that are left.
class LingeringStreams : loop::Timer {
 public:
  explicit LingeringStreams(Loop& loop) noexcept : loop::Timer(&expire), loop_(loop) {}

  /// Keeps the stream for at most `time`; it replaces the oldest one if all entries are used.
  void add(AnyStream stream, Duration time) noexcept {
    std::optional<Entry>& entry = entries_[next_];
    next_ = (next_ + 1) % entries_.size();
    entry.emplace(Entry{std::move(stream), after(loop_.now(), time)});
    if (!armed()) loop_.timers().start(*this, entry->until);
  }

 private:
  // Part of the descriptors that a server does not use for connections.
  static constexpr std::size_t entries_max = 16;
  struct Entry {
    AnyStream stream;
    Instant until;
  };

  /// Closes the streams whose time is over; the rest wait for the timer's next expiry.
  static void expire(loop::Timer& self) {
    auto& streams = static_cast<LingeringStreams&>(self);
    const Instant now = streams.loop_.now();
    Instant soonest = never;
    for (std::optional<Entry>& each : streams.entries_) {
      if (each && each->until <= now) each.reset();
      if (each) soonest = std::min(soonest, each->until);
    }
    streams.loop_.timers().start(streams, soonest);
  }

  Loop& loop_;
  std::array<std::optional<Entry>, entries_max> entries_;
  std::size_t next_ = 0;
};

}  // namespace weir
