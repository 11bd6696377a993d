// WebSocket frames (RFC 6455 §5): a reader, which turns bytes into events, masking, and writers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "weir/base/detail/bytes.hpp"

namespace weir::http {

enum class WsRole : std::uint8_t { server, client };

enum class WsOpcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

/// The longest payload of a control frame (RFC 6455 §5.5).
inline constexpr std::size_t ws_control_max = 125;
/// The longest header of a frame: with a length of 64 bits and a masking key.
inline constexpr std::size_t ws_header_size_max = 14;
/// The longest control frame.
inline constexpr std::size_t ws_control_frame_max = 2 + 4 + ws_control_max;

/// A masking key. A client draws one for each frame from a source that servers and pages cannot
/// predict (RFC 6455 §5.3).
using WsMaskKey = std::array<std::byte, 4>;

/// A WsMask masks or unmasks the payload of one frame (RFC 6455 §5.3), in pieces of any size.
class WsMask {
 public:
  WsMask() noexcept = default;
  explicit WsMask(WsMaskKey key) noexcept;

  /// Combines the next bytes of the payload with the key. `out` has room for in.size() bytes. It
  /// is equal to in.data(), or the two do not overlap.
  void apply(Bytes in, std::byte* out) noexcept;

 private:
  std::uint32_t key_ = 0;  // in the order of memory, rotated to the next byte of the payload
};

// Reading.

/// One event of a WsFrameReader.
struct WsFrameEvent {
  enum class Kind : std::uint8_t {
    need_more,  ///< the input is used up
    payload,    ///< a part of the payload of a frame of a message
    control,    ///< a whole control frame; `bytes` is its payload
    error,      ///< the bytes violate the protocol; the rest of the input cannot be used
  };
  Kind kind = Kind::need_more;
  /// The type of a control frame; for `payload` the type of the message, text or binary.
  WsOpcode opcode = WsOpcode::continuation;
  bool first = false;        ///< the event is the first one of the frame
  bool last = false;         ///< the event is the last one of the frame
  bool begins = false;       ///< the frame is the first one of the message
  bool ends = false;         ///< the frame is the last one of the message
  bool compressed = false;   ///< the message is compressed (RFC 7692 §6)
  std::uint64_t length = 0;  ///< the bytes of the whole payload
  std::size_t consumed = 0;  ///< bytes of the input that are finished, `bytes` included
  Bytes bytes;               ///< unmasked; valid until the next call; a payload is in the input
};

/// Reads frames from any pieces of input, and unmasks their payloads in place. The reader checks
/// what a frame alone can violate, and the order of frames: masking by role, reserved bits and
/// opcodes, the shortest encoding of lengths, control frames, and continuations. The events depend
/// only on the bytes and not on how they were split, except for the parts of payloads. The first
/// event of a payload follows its header immediately, even without bytes. The reader allocates
/// nothing.
/// Threads: one at a time.
class WsFrameReader {
 public:
  /// `deflates` is true if permessage-deflate was negotiated, so that messages may be compressed.
  explicit WsFrameReader(WsRole role, bool deflates = false) noexcept
      : role_(role), deflates_(deflates) {}

  /// Returns the next event. `input` starts at the end of the last event's `consumed` bytes. After
  /// `need_more` it starts behind the last input. The reader changes the consumed bytes.
  WsFrameEvent next(MutableBytes input) noexcept;
  /// Returns true at the end of a frame, and before the first byte.
  bool between_frames() const noexcept { return state_ == State::start && stored_size_ == 0; }
  /// Returns true if a message has begun, and its last frame has not ended.
  bool within_message() const noexcept { return message_ != WsOpcode::continuation; }

 private:
  enum class State : std::uint8_t {
    start,    // the first two bytes of a header
    header,   // the rest of a header: a longer length, and the masking key
    payload,  // of a message
    control,  // the payload of a control frame
    failed,
  };
  /// The result of one step.
  enum class Progress : std::uint8_t {
    event,    ///< there is an event
    forward,  ///< the next step follows
    blocked,  ///< more input is needed
  };

  bool read_small(MutableBytes input, WsFrameEvent& event) noexcept;
  std::byte* take(MutableBytes& input, std::size_t count) noexcept;
  Progress step(MutableBytes& input, WsFrameEvent& event) noexcept;
  Progress read_start(const std::byte* bytes, WsFrameEvent& event) noexcept;
  bool is_start_valid(bool masked) const noexcept;
  std::size_t header_rest() const noexcept;
  Progress read_header_rest(const std::byte* bytes, WsFrameEvent& event) noexcept;
  Progress begin_payload() noexcept;
  Progress read_payload(MutableBytes& input, WsFrameEvent& event) noexcept;
  Progress read_control(std::byte* bytes, WsFrameEvent& event) noexcept;
  Progress fail(WsFrameEvent& event) noexcept;

  std::array<std::byte, ws_control_max> stored_{};  // the begin of a header or of a control payload
  std::uint8_t stored_size_ = 0;
  WsRole role_;
  bool deflates_;
  bool compressed_ = false;  // the open message is compressed
  State state_ = State::start;
  std::uint8_t reserved_ = 0;     // the three reserved bits of the frame
  std::uint8_t length_code_ = 0;  // the 7 bits of the length
  bool final_ = false;
  bool first_ = false;   // no event of the payload has been returned
  bool begins_ = false;  // the frame begins a message
  WsOpcode opcode_ = WsOpcode::continuation;
  WsOpcode message_ = WsOpcode::continuation;  // the type of the open message; else continuation
  WsMask mask_;
  std::uint64_t length_ = 0;  // of the payload
  std::uint64_t left_ = 0;    // bytes of the payload that have not arrived
};

// Writing.

struct WsFrameHeader {
  WsOpcode opcode = WsOpcode::text;
  bool final = true;
  std::uint64_t length = 0;       ///< the bytes of the payload, below 2^63
  std::optional<WsMaskKey> mask;  ///< of a client; the payload that follows is masked with it
  bool compressed = false;        ///< the frame begins a compressed message
};

/// Writes the header of a frame to `out`, which has room for ws_header_size_max bytes.
/// Returns: the end of the header.
char* write_ws_header(const WsFrameHeader& header, char* out) noexcept;

/// Writes a message of at most ws_control_max bytes without a mask to `out`, which has room for
/// ws_control_frame_max bytes.
/// Returns: the size of the frame.
inline std::size_t write_small_frame(bool is_text, Bytes payload, std::byte* out) noexcept {
  out[0] =
      static_cast<std::byte>(0x80 | static_cast<int>(is_text ? WsOpcode::text : WsOpcode::binary));
  out[1] = static_cast<std::byte>(payload.size());
  if (!payload.empty()) std::memcpy(out + 2, payload.data(), payload.size());
  return 2 + payload.size();
}

/// Writes a control frame to `out`, which has room for ws_control_frame_max bytes. `payload` has at
/// most ws_control_max bytes.
/// Returns: the end of the frame.
char* write_ws_control(WsOpcode opcode, Bytes payload, const std::optional<WsMaskKey>& mask,
                       char* out) noexcept;

}  // namespace weir::http
