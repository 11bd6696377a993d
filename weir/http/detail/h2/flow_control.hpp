// Flow control of one HTTP/2 connection (RFC 9113 §5.2 and §6.9): the windows of both directions.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/http/detail/h2/limits.hpp"
#include "weir/http/detail/h2/role.hpp"

namespace weir::http {

/// The StreamWindows of a stream are the bytes of DATA that each side may still send on it, and the
/// bytes that the carrier has not consumed.
/// Threads: those of the session.
class StreamWindows {
 public:
  /// The windows of a new stream. A window of received data may begin below its full size, because
  /// the peer does not know the settings of the session yet.
  struct Sizes {
    std::uint32_t send = 0;
    std::uint32_t receive = 0;
    std::uint32_t receive_full = 0;
  };

  StreamWindows() noexcept = default;
  explicit StreamWindows(const Sizes& sizes) noexcept
      : send_(static_cast<std::int32_t>(sizes.send)),
        receive_(static_cast<std::int32_t>(sizes.receive)),
        receive_full_(sizes.receive_full) {}

  /// Returns the bytes that the peer allows to be sent; negative if it has reduced its initial
  /// window.
  std::int32_t send() const noexcept { return send_; }
  /// Returns the bytes that the peer may still send; negative after a change by SETTINGS.
  std::int32_t receive() const noexcept { return receive_; }
  /// Returns the size of the window of received data when nothing is unconsumed.
  std::uint32_t receive_full() const noexcept { return receive_full_; }
  /// Returns the bytes of DATA that were received and not yet consumed.
  std::uint32_t unconsumed() const noexcept { return unconsumed_; }

  /// Changes the send window by an increment of WINDOW_UPDATE, or by the difference of a setting.
  /// Returns: false if the window would exceed the largest one. It does not change then.
  [[nodiscard]] bool change_send(std::int64_t change) noexcept {
    if (send_ + change > window_max) return false;
    send_ = static_cast<std::int32_t>(send_ + change);
    return true;
  }
  /// Changes the window of received data when the peer learns another size.
  void change_receive(std::int32_t change) noexcept { receive_ += change; }
  /// Counts DATA that arrived; receive() allows its size.
  void on_received(std::uint32_t size) noexcept {
    assert(std::int64_t{size} <= receive_);
    receive_ -= static_cast<std::int32_t>(size);
    unconsumed_ += size;
  }
  /// Allows the peer to send `count` further bytes.
  /// Returns: the increment of the WINDOW_UPDATE to send, or 0 if it is not worth a frame yet.
  std::uint32_t allow_more(std::uint32_t count) noexcept {
    returned_ += count;
    if (returned_ < std::max(receive_full_ / 2, 1U)) return 0;
    const std::uint32_t increment = std::exchange(returned_, 0);
    receive_ += static_cast<std::int32_t>(increment);
    return increment;
  }

 private:
  friend class FlowControl;

  std::int32_t send_ = 0;
  std::int32_t receive_ = 0;
  std::uint32_t receive_full_ = 0;
  std::uint32_t unconsumed_ = 0;  // bytes in the hands of the carrier
  std::uint32_t returned_ = 0;    // consumed bytes that no WINDOW_UPDATE has returned yet
  std::uint32_t grown_ = 0;       // bytes of the full size that growth has added
};

/// A FlowControl has the windows of a connection, and changes those of its streams with them. It
/// sees no frames: the session sends each increment that it returns in a WINDOW_UPDATE. DATA that
/// arrives counts in both windows. The bytes return to each window separately, so that a body
/// without a reader holds only the window of its stream.
/// Threads: those of the session.
class FlowControl {
 public:
  FlowControl(H2Role role, const H2Limits& limits) noexcept;

  // DATA that the session sends.

  /// Returns true if the window of the connection allows DATA.
  bool may_send() const noexcept { return send_ > 0; }
  /// Returns how many bytes both windows allow; not positive if they allow none.
  std::int32_t allowed(const StreamWindows& stream) const noexcept {
    return std::min(stream.send_, send_);
  }
  /// Counts DATA that was sent; both windows allowed its size.
  void on_sent(StreamWindows& stream, std::uint32_t size) noexcept {
    assert(std::int64_t{size} <= std::max(allowed(stream), 0));
    stream.send_ -= static_cast<std::int32_t>(size);
    send_ -= static_cast<std::int32_t>(size);
    sent_ += size;
  }
  /// Returns the bytes of DATA that were sent, modulo 2^32.
  std::uint32_t sent() const noexcept { return sent_; }
  /// Applies WINDOW_UPDATE of the connection.
  /// Returns: false if the window would exceed the largest one. It does not change then.
  [[nodiscard]] bool add_send(std::uint32_t increment) noexcept {
    if (increment > window_max - send_) return false;
    send_ += static_cast<std::int32_t>(increment);
    return true;
  }

  // DATA that the peer sends.

  /// Raises the window from its size in the protocol to the one of the limits.
  /// Returns: the increment of the WINDOW_UPDATE to send, or 0 if there is none.
  std::uint32_t open(const H2Limits& limits) noexcept;
  /// Returns true if the window of the connection allows the peer to send DATA.
  bool may_receive() const noexcept { return receive_ > 0; }
  /// Counts DATA in the window of the connection.
  /// Returns: false if the DATA exceeds the window. It is not counted then.
  [[nodiscard]] bool on_received(std::uint32_t size) noexcept {
    if (std::int64_t{size} > receive_) return false;
    receive_ -= static_cast<std::int32_t>(size);
    return true;
  }
  /// Returns bytes of DATA that no stream has counted.
  void give_back(std::uint32_t count) noexcept { returned_ += count; }
  /// Returns bytes of a stream to the window of the connection.
  void consume(StreamWindows& stream, std::size_t count) noexcept {
    assert(count <= stream.unconsumed_);
    stream.unconsumed_ -= static_cast<std::uint32_t>(count);
    give_back(static_cast<std::uint32_t>(count));
  }
  /// Doubles the window of a stream if `count` further bytes cause a WINDOW_UPDATE, and if
  /// `body_left` bytes do not fit into the window. All streams together grow by at most half of
  /// H2Limits::connection_window.
  void grow(StreamWindows& stream, std::size_t count, std::uint64_t body_left) noexcept;
  /// Takes the growth of a stream back, and returns its bytes to the window of the connection.
  /// Returns: true if the stream had bytes that were not consumed. take_update() follows then.
  bool release(StreamWindows& stream) noexcept {
    growth_left_ += std::exchange(stream.grown_, 0);
    if (stream.unconsumed_ == 0) return false;
    give_back(std::exchange(stream.unconsumed_, 0));
    return true;
  }
  /// Takes the bytes that were returned if they are worth a frame, or if the peer has no more left
  /// than that. Bodies that their handlers do not read must leave room for the others.
  /// Returns: the increment of the WINDOW_UPDATE to send, or 0 if there is none.
  std::uint32_t take_update() noexcept {
    const bool scarce = std::int64_t{returned_} >= receive_;
    if (returned_ == 0 || (returned_ < worth_ && !scarce)) return 0;
    const std::uint32_t increment = std::exchange(returned_, 0);
    receive_ += static_cast<std::int32_t>(increment);
    return increment;
  }

 private:
  std::int32_t send_ = window_default;
  std::int32_t receive_ = window_default;
  std::uint32_t returned_ = 0;  // bytes that no WINDOW_UPDATE has returned yet
  std::uint32_t worth_;         // least increment of a usual WINDOW_UPDATE
  std::uint32_t growth_left_;   // bytes by which the windows of all streams may still grow
  std::uint32_t sent_ = 0;
};

}  // namespace weir::http
