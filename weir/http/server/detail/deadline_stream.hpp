// What is left of an HTTP/1.1 connection while it is idle: its stream, and one timer for the peer.
#pragma once

#include <cassert>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/http/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class Transport;

/// A stream with one timer for whatever the peer must do next. The timer is lazy: a deadline costs
/// a few stores; only when the timer fires it is compared with the clock. Every idle connection has
/// one of these, so it holds nothing that only work needs; that is in a Transport.
/// Threads: its loop's. Lifetime: outlives its Transport; may be moved until it is first used.
class TimedStream : Timer {
 public:
  /// What the peer is expected to send.
  enum class Waiting : std::uint8_t { nothing, request, head, body, lingering };

  explicit TimedStream(tcp::Stream stream) noexcept : Timer(&fired), stream_(std::move(stream)) {}
  TimedStream(TimedStream&& other) noexcept : TimedStream(std::move(other.stream_)) {
    assert(!other.armed() && other.transport_ == nullptr);
  }

  tcp::Stream& stream() noexcept { return stream_; }
  Loop& loop() const noexcept { return stream_.loop(); }
  /// What works on the bytes of the stream, or nullptr: it is idle.
  Transport* transport() const noexcept { return transport_; }
  /// Whether there has ever been one.
  bool used() const noexcept { return used_; }

  /// Brackets every read of the stream: after the deadline it is cancelled.
  void begin_read(Waiting what, Instant deadline) noexcept {
    waiting_ = what;
    read_expired_ = false;
    read_deadline_ = deadline;
    watch_until(deadline);
  }
  void end_read() noexcept { waiting_ = Waiting::nothing; }
  Waiting waiting() const noexcept { return waiting_; }
  /// Makes the deadline of the present read come sooner.
  void hurry(Instant deadline) noexcept {
    if (waiting_ != Waiting::nothing && deadline < read_deadline_) begin_read(waiting_, deadline);
  }
  /// `error` of a read, or Errc::timed_out when its deadline made it.
  std::error_code explain(std::error_code error) const noexcept {
    return read_expired_ && error == Errc::cancelled ? make_error_code(Errc::timed_out) : error;
  }

  /// Whether this connection has done so much in one turn of the loop that others come first.
  /// Reads and writes that never have to wait would otherwise keep them out.
  bool share_used() noexcept {
    // Taking another turn for the same one only makes it wait once too often.
    const auto turn = static_cast<std::uint16_t>(loop().counters().turns.value());
    if (std::exchange(share_turn_, turn) != turn) share_ = 0;
    return ++share_ > share_max;
  }

  /// Tells the peer that nothing more comes and drops what it still sends, for a moment.
  /// Cancel: closes at once.
  Task<> linger(const Limits& limits);

 private:
  friend Transport;
  static constexpr std::uint8_t share_max = 16;

  static void fired(Timer& timer);
  Instant check_read(Instant now);
  void watch_until(Instant deadline) noexcept {
    if (!armed() || deadline < Timer::deadline()) loop().timers().start(*this, deadline);
  }

  // The small ones lie in what Timer leaves of its last word.
  Waiting waiting_ = Waiting::nothing;
  bool read_expired_ = false;
  std::uint8_t share_ = 0;
  bool used_ = false;
  std::uint16_t share_turn_ = 0;
  tcp::Stream stream_;
  Instant read_deadline_{};
  Transport* transport_ = nullptr;
};

}  // namespace weir::http
