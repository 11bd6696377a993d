// The stream of an HTTP/1.1 connection with one timer for the peer; it is all that is left while
// the connection is idle.
#pragma once

#include <cassert>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/http/server/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ConnectionIo;

/// A stream with one timer for the next action of the peer. The timer is lazy: a deadline costs a
/// few stores and is compared with the clock only when the timer fires. Every idle connection has
/// a DeadlineStream, so it holds nothing that only work needs; ConnectionIo holds that.
/// Threads: its loop's.
/// Lifetime: outlives its ConnectionIo; may be moved until it is first used.
class DeadlineStream : Timer {
 public:
  /// The bytes that the peer is expected to send.
  enum class ReadPurpose : std::uint8_t { nothing, request, head, body, lingering };

  explicit DeadlineStream(tcp::Stream stream) noexcept
      : Timer(&on_timer), stream_(std::move(stream)) {}
  DeadlineStream(DeadlineStream&& other) noexcept : DeadlineStream(std::move(other.stream_)) {
    assert(!other.armed() && other.io_ == nullptr);
  }

  tcp::Stream& stream() noexcept { return stream_; }
  Loop& loop() const noexcept { return stream_.loop(); }
  /// Returns the ConnectionIo that works on the stream's bytes; nullptr while the connection is
  /// idle.
  ConnectionIo* io() const noexcept { return io_; }
  /// Returns true if there has ever been a ConnectionIo.
  bool was_active() const noexcept { return was_active_; }

  /// Starts the deadline of a read; end_read() must follow. A read is cancelled after its
  /// deadline.
  void begin_read(ReadPurpose what, Instant deadline) noexcept {
    read_purpose_ = what;
    read_expired_ = false;
    read_deadline_ = deadline;
    watch_until(deadline);
  }
  void end_read() noexcept { read_purpose_ = ReadPurpose::nothing; }
  ReadPurpose read_purpose() const noexcept { return read_purpose_; }
  /// Makes the deadline of the present read earlier; ignores a later `deadline`.
  void shorten_deadline(Instant deadline) noexcept {
    if (read_purpose_ != ReadPurpose::nothing && deadline < read_deadline_)
      begin_read(read_purpose_, deadline);
  }
  /// Returns Errc::timed_out if the deadline of the read caused `error`; else `error`.
  std::error_code to_timeout(std::error_code error) const noexcept {
    return read_expired_ && error == Errc::cancelled ? make_error_code(Errc::timed_out) : error;
  }

  /// Counts one use of the loop's turn. Returns true if this connection has had its share of the
  /// turn, so that other connections come first. Reads and writes that never wait would otherwise
  /// keep the others out.
  bool turn_budget_used() noexcept {
    // The turn number is cut to 16 bits. Two turns with one number cost only an unneeded wait.
    const auto turn = static_cast<std::uint16_t>(loop().counters().turns.value());
    if (std::exchange(budget_turn_, turn) != turn) turn_uses_ = 0;
    return ++turn_uses_ > turn_budget;
  }

  /// Shuts down the sending side, then reads and drops what the peer still sends. It ends after
  /// Limits::linger_timeout or linger_bytes_max.
  /// Cancel: closes immediately.
  Task<> linger(const Limits& limits);

 private:
  friend ConnectionIo;
  static constexpr std::uint8_t turn_budget = 16;

  static void on_timer(Timer& timer);
  Instant check_read(Instant now);
  void watch_until(Instant deadline) noexcept {
    if (!armed() || deadline < Timer::deadline()) loop().timers().start(*this, deadline);
  }

  // The small members lie in the padding of Timer's last word.
  ReadPurpose read_purpose_ = ReadPurpose::nothing;
  bool read_expired_ = false;
  std::uint8_t turn_uses_ = 0;
  bool was_active_ = false;
  std::uint16_t budget_turn_ = 0;
  tcp::Stream stream_;
  Instant read_deadline_{};
  ConnectionIo* io_ = nullptr;
};

}  // namespace weir::http
