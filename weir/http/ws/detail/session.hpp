// One WebSocket connection without a socket (RFC 6455 §5 to §8): bytes in, events and frames out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/http/ws/detail/frame.hpp"
#include "weir/http/ws/websocket_limits.hpp"

namespace weir::http {

/// Returns true if a Close may contain the code: a code of the protocol or of the registry, or one
/// for libraries and applications, from 3000 to 4999 (RFC 6455 §7.4.2).
bool is_valid_close_code(WebSocketCloseCode code) noexcept;

/// The longest reason of a Close.
inline constexpr std::size_t ws_reason_max = ws_control_max - 2;

/// One event of a session.
struct WsEvent {
  enum class Kind : std::uint8_t {
    need_more,  ///< the input is used up
    message,    ///< a part of a message; `begins` and `ends` tell which part
    ping,       ///< a ping; the session answers it
    pong,       ///< a pong, also one that no ping has asked for
    close,      ///< the peer closes with `code` and a reason; the session answers it
    failed,     ///< the peer has violated the protocol or a limit; the session closes with `code`
  };
  Kind kind = Kind::need_more;
  bool is_text = false;  ///< the message is text, else binary
  bool begins = false;   ///< the part is the first one of the message
  bool ends = false;     ///< the part is the last one of the message
  /// The message is compressed. Its text is not checked, and the session limits its compressed
  /// bytes only; see WsDeflate.
  bool compressed = false;
  WebSocketCloseCode code = WebSocketCloseCode::no_status;
  std::size_t consumed = 0;  ///< bytes of the input that are finished, `bytes` included
  /// A part of the message, the payload of a ping or pong, or the reason. A part of a message is in
  /// the input, and may be empty if it ends the message. Valid until the next call of next().
  Bytes bytes;
};

/// The state of one connection after its handshake. A message is valid when its last part has
/// arrived. All parts of text are checked: each is the start of valid UTF-8 with the parts before,
/// and a character may be split. The carrier reads input and calls next() until it returns
/// need_more. It sends write_control() between its frames while has_control() is true. A session
/// allocates nothing, and holds nothing of messages.
/// Threads: one at a time.
/// Lifetime: the limits outlive the session.
class WsSession {
 public:
  /// `deflates` is true if permessage-deflate was negotiated.
  WsSession(WsRole role, const WebSocketLimits& limits, bool deflates = false) noexcept
      : limits_(limits), reader_(role, deflates) {}

  // Input.

  /// Returns the next event. `input` starts at the end of the last event's `consumed` bytes. The
  /// session changes the consumed bytes. All input after a Close or after `failed` is discarded.
  WsEvent next(MutableBytes input) noexcept;
  /// Returns true if a message has begun and not ended.
  bool within_message() const noexcept { return reader_.within_message(); }
  /// Returns true at the end of a frame, and before the first byte.
  bool between_frames() const noexcept { return reader_.between_frames(); }
  /// Returns true if a new session could replace this one: no frame and no message has begun in
  /// either direction, and nothing is due.
  bool at_rest() const noexcept {
    return between_frames() && !within_message() && !sends_message_ && !has_control() &&
           closing_ == Closing::open;
  }
  /// Returns true if a message that is sent in several frames has begun and not ended.
  bool sends_message() const noexcept { return sends_message_; }
  bool close_received() const noexcept {
    return closing_ == Closing::received || closing_ == Closing::closed;
  }
  /// Lets the session fail, because a compressed message is invalid or too large.
  void reject(WebSocketCloseCode code) noexcept { fail(code); }
  bool failed() const noexcept {
    return closing_ == Closing::failing || closing_ == Closing::failed;
  }

  // Output. The members write one frame or one header, and return its end. A client passes a fresh
  // mask for each, a server none.

  /// Returns true if messages, pings and write_close() are allowed: no Close was sent or received,
  /// and the session has not failed.
  bool may_send() const noexcept { return closing_ == Closing::open; }
  /// Returns true if write_control() has a frame to write.
  bool has_control() const noexcept { return pong_due_ || close_due(); }
  /// Writes the pong for the newest ping, or the Close that answers the peer or its violation.
  /// `out` has room for ws_control_frame_max bytes. has_control() is true.
  char* write_control(const std::optional<WsMaskKey>& mask, char* out) noexcept;
  /// Writes the header of the next frame of a message. `out` has room for ws_header_size_max bytes.
  /// The opcode is the type of the message, also for its later frames, and `compressed` tells of
  /// the message. may_send() is true.
  char* write_header(const WsFrameHeader& frame, char* out) noexcept;
  /// Writes a ping with at most ws_control_max bytes. `out` has room for ws_control_frame_max
  /// bytes. may_send() is true.
  char* write_ping(Bytes payload, const std::optional<WsMaskKey>& mask, char* out) noexcept;
  /// Writes a Close. `code` is valid, or no_status for none. The reason ends before the first
  /// character that is not UTF-8, or that exceeds ws_reason_max bytes. `out` has room for
  /// ws_control_frame_max bytes. may_send() is true.
  char* write_close(WebSocketCloseCode code, std::string_view reason,
                    const std::optional<WsMaskKey>& mask, char* out) noexcept;
  bool close_sent() const noexcept { return closing_ == Closing::sent || finished(); }
  /// Returns true if the carrier can end the connection: nothing more is sent or received.
  bool finished() const noexcept {
    return closing_ == Closing::closed || closing_ == Closing::failed;
  }

 private:
  // The closing handshake (RFC 6455 §7.1). A violation by the peer fails the connection (§7.1.7).
  // Each end sends at most one Close (§5.5.1).
  //
  //   open --write_close()--> sent --the Close of the peer--> closed
  //   open --the Close of the peer--> received --write_control()--> closed
  //   open --a violation--> failing --write_control()--> failed
  //   sent --a violation--> failed
  enum class Closing : std::uint8_t {
    open,
    sent,      // the own Close was sent first
    received,  // the peer has sent its Close first, and the answer is due
    failing,   // the peer has violated the protocol or a limit, and the own Close is due
    closed,    // both ends have sent a Close
    failed,    // the peer has violated the protocol or a limit, and the own Close was sent
  };

  void change(Closing next) noexcept;
  bool close_due() const noexcept {
    return closing_ == Closing::received || closing_ == Closing::failing;
  }
  // Each handler returns true if there is an event for the carrier.
  bool handle(const WsFrameEvent& frame, WsEvent& event) noexcept;
  std::uint64_t bytes_max(bool compressed) const noexcept;
  bool on_payload(const WsFrameEvent& frame, WsEvent& event) noexcept;
  bool on_control(const WsFrameEvent& frame, WsEvent& event) noexcept;
  bool on_close(Bytes payload, WsEvent& event) noexcept;
  Bytes check_text(const WsFrameEvent& frame) noexcept;
  bool fail_with(WebSocketCloseCode code, WsEvent& event) noexcept;
  void fail(WebSocketCloseCode code) noexcept;
  void answer_ping(Bytes payload) noexcept;

  const WebSocketLimits& limits_;
  std::uint64_t message_bytes_ = 0;  // of the frames of the message so far
  WsFrameReader reader_;
  Utf8Checker utf8_;
  bool begins_ = false;         // no part of the message has been returned
  bool sends_message_ = false;  // the next frame of a message is a continuation
  Closing closing_ = Closing::open;
  bool pong_due_ = false;
  WebSocketCloseCode code_ =
      WebSocketCloseCode::no_status;  // of the Close that is due, and of the failure
  std::uint8_t pong_size_ = 0;
  std::array<std::byte, ws_control_max> pong_{};  // the payload of the newest ping
};

}  // namespace weir::http
