// HTTP/2 frames (RFC 9113 §4 and §6): a reader, which turns bytes into events, and writers.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::http {

/// The error codes of HTTP/2 (RFC 9113 §7).
enum class H2Error : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  flow_control_error = 3,
  settings_timeout = 4,
  stream_closed = 5,
  frame_size_error = 6,
  refused_stream = 7,
  cancel = 8,
  compression_error = 9,
  connect_error = 10,
  enhance_your_calm = 11,
  inadequate_security = 12,
  http_1_1_required = 13,
};

enum class FrameType : std::uint8_t {
  data = 0,
  headers = 1,
  priority = 2,
  rst_stream = 3,
  settings = 4,
  push_promise = 5,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9,
  priority_update = 16,  ///< RFC 9218 §7.1
};

/// The flags of frames. Each type has its own subset.
struct FrameFlag {
  static constexpr std::uint8_t ack = 0x1;
  static constexpr std::uint8_t end_stream = 0x1;
  static constexpr std::uint8_t end_headers = 0x4;
  static constexpr std::uint8_t padded = 0x8;
  static constexpr std::uint8_t priority = 0x20;
};

/// The settings that Weir knows (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1).
enum class SettingId : std::uint16_t {
  header_table_size = 1,
  enable_push = 2,
  max_concurrent_streams = 3,
  initial_window_size = 4,
  max_frame_size = 5,
  max_header_list_size = 6,
  enable_connect_protocol = 8,
  no_rfc7540_priorities = 9,
};

struct Setting {
  SettingId id;
  std::uint32_t value;
};

/// The largest payload that a peer accepts until its SETTINGS say otherwise.
inline constexpr std::uint32_t frame_payload_default = 16 * 1024;
inline constexpr std::uint32_t frame_payload_max = (1U << 24) - 1;
inline constexpr std::uint32_t stream_id_max = 0x7FFFFFFF;
inline constexpr std::size_t frame_header_size = 9;

// Reading.

/// One event of a FrameReader.
struct FrameEvent {
  enum class Kind : std::uint8_t {
    need_more,         ///< the input is used up
    data,              ///< a part of the content of DATA
    block,             ///< a part of a field block, in HEADERS or CONTINUATION
    reset,             ///< RST_STREAM; `value` is the error code
    setting,           ///< an entry of SETTINGS; `value` is its value
    settings_end,      ///< the end of SETTINGS
    settings_ack,      ///< SETTINGS with the flag ACK
    ping,              ///< PING; `bytes` are its 8 bytes
    goaway,            ///< GOAWAY; `value` is the last stream that the peer handles
    window_update,     ///< WINDOW_UPDATE; `value` is the increment
    priority_update,   ///< PRIORITY_UPDATE of the stream; `bytes` are its field value
    ignored,           ///< a frame without effect: PRIORITY, or a type that is not known
    stream_error,      ///< the frame is an error of its stream, and had no other effect
    connection_error,  ///< the bytes are invalid; the rest of the input cannot be used
  };
  Kind kind = Kind::need_more;
  FrameType type = FrameType::data;
  std::uint8_t flags = 0;
  bool first = false;      ///< `bytes` begin the content of the frame
  bool last = false;       ///< `bytes` end the content of the frame
  SettingId setting = {};  ///< of `setting`
  H2Error error = {};      ///< of an error, of GOAWAY, and of HEADERS with invalid priority
  std::uint32_t stream = 0;
  std::uint32_t value = 0;    ///< of `data`: the bytes of the frame that flow control counts
  std::uint32_t content = 0;  ///< the bytes of all of the content, without padding
  std::size_t consumed = 0;   ///< bytes of the input that are finished, `bytes` included
  Bytes bytes;                ///< valid until the next call; content is a view into the input
};

/// Reads frames from any pieces of input. The content of DATA and of field blocks is returned in
/// place. The reader checks what a frame alone can violate: lengths, stream identifiers, flags,
/// padding, and the order of HEADERS and CONTINUATION. The events depend only on the bytes and not
/// on how they were split, except for the parts of content. The reader allocates nothing.
/// Threads: one at a time.
class FrameReader {
 public:
  /// Returns the next event. `input` starts at the end of the last event's `consumed` bytes. After
  /// `need_more` it is longer than before, or starts behind the last input.
  FrameEvent next(Bytes input) noexcept;
  /// Returns true at the end of a frame.
  bool between_frames() const noexcept { return state_ == State::header && stored_size_ == 0; }
  /// Returns true within the payload of DATA.
  bool within_data() const noexcept { return state_ != State::header && type_ == FrameType::data; }

 private:
  enum class State : std::uint8_t {
    header,
    prefix,    // the length of the padding, and the fields of RFC 7540 priority
    content,   // of DATA or of a field block
    skip,      // padding and other bytes without a meaning
    small,     // a payload of a few bytes
    settings,  // the entries of SETTINGS
    failed,
  };
  /// The result of one step.
  enum class Progress : std::uint8_t {
    event,    ///< there is an event
    forward,  ///< the next step follows
    blocked,  ///< more input is needed
  };
  // A longer PRIORITY_UPDATE is ignored: the two parameters that have a meaning need 6 bytes.
  static constexpr std::size_t small_max = 32;

  const std::byte* take(Bytes& input, std::size_t count) noexcept;
  Progress step(Bytes& input, FrameEvent& event) noexcept;
  Progress read_header(const std::byte* bytes, FrameEvent& event) noexcept;
  Progress begin_payload(FrameEvent& event) noexcept;
  Progress begin_control(FrameEvent& event) noexcept;
  Progress begin_small(std::uint32_t length, FrameEvent& event) noexcept;
  Progress begin_content() noexcept;
  std::size_t prefix_size() const noexcept;
  Progress read_prefix(const std::byte* bytes, FrameEvent& event) noexcept;
  Progress read_content(Bytes& input, FrameEvent& event) noexcept;
  Progress read_small(const std::byte* bytes, FrameEvent& event) noexcept;
  Progress read_settings(Bytes& input, FrameEvent& event) noexcept;
  Progress skip(std::uint32_t count) noexcept;
  Progress emit(FrameEvent::Kind kind, FrameEvent& event) const noexcept;
  Progress ignore(FrameEvent& event) noexcept;
  Progress fail(H2Error error, FrameEvent& event) noexcept;

  std::array<std::byte, small_max> stored_{};  // the begin of a header or a small payload
  std::uint8_t stored_size_ = 0;
  State state_ = State::header;
  FrameType type_ = FrameType::data;
  std::uint8_t flags_ = 0;
  std::uint8_t padding_ = 0;
  bool first_ = false;
  bool block_open_ = false;    // the next frame must be CONTINUATION
  H2Error error_ = {};         // of the connection, or of HEADERS
  std::uint32_t length_ = 0;   // of the payload
  std::uint32_t content_ = 0;  // bytes of all of the content
  std::uint32_t left_ = 0;     // bytes of the content, of the entries, or to be skipped
  std::uint32_t stream_ = 0;
  std::uint32_t block_stream_ = 0;  // the stream of the open block
};

/// The most frequent frame: HEADERS with a whole field block, without padding and priority.
struct WholeHeaders {
  std::uint32_t stream = 0;  ///< stream identifier; 0 if there is no such frame
  std::uint32_t size = 0;    ///< bytes of the block
  std::uint8_t flags = 0;
};

/// Reads the frame at the start of `input`, which begins at a frame boundary.
/// Returns: a frame without a stream if the frame is incomplete, or not a WholeHeaders.
inline WholeHeaders read_whole_headers(Bytes input) noexcept {
  if (input.size() < frame_header_size) return {};
  std::uint64_t first;  // all bytes of the header but the last
  std::memcpy(&first, input.data(), sizeof first);
  if constexpr (std::endian::native == std::endian::little) first = __builtin_bswap64(first);
  const auto size = static_cast<std::uint32_t>(first >> 40);
  const auto flags = static_cast<std::uint8_t>(first >> 24);
  const auto last = std::to_integer<std::uint32_t>(input[sizeof first]);
  constexpr std::uint8_t checked = FrameFlag::end_headers | FrameFlag::padded | FrameFlag::priority;
  if (static_cast<FrameType>(first >> 32 & 0xFF) != FrameType::headers ||
      (flags & checked) != FrameFlag::end_headers || size > frame_payload_default ||
      input.size() - frame_header_size < size) {
    return {};
  }
  return {(static_cast<std::uint32_t>(first) << 8 | last) & stream_id_max, size, flags};
}

// Writing. Each function writes a frame to `out` and returns its end. The caller provides the room.

inline constexpr std::size_t rst_stream_size = frame_header_size + 4;
inline constexpr std::size_t ping_size = frame_header_size + 8;
inline constexpr std::size_t goaway_size = frame_header_size + 8;
inline constexpr std::size_t window_update_size = frame_header_size + 4;
inline constexpr std::size_t setting_size = 6;

struct FrameHeader {
  std::uint32_t length = 0;
  FrameType type = FrameType::data;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
};

/// Writes the header of any frame. Its payload follows.
inline char* write_frame_header(const FrameHeader& header, char* out) noexcept {
  assert(header.length <= frame_payload_max && header.stream <= stream_id_max);
  // All bytes but the last, which is the end of the stream identifier.
  std::uint64_t first = std::uint64_t{header.length} << 40 |
                        std::uint64_t{static_cast<std::uint8_t>(header.type)} << 32 |
                        std::uint64_t{header.flags} << 24 | header.stream >> 8;
  if constexpr (std::endian::native == std::endian::little) first = __builtin_bswap64(first);
  std::memcpy(out, &first, sizeof first);
  out[sizeof first] = static_cast<char>(header.stream);
  return out + frame_header_size;
}

/// Consecutive DATA frames whose payloads stay in the memory of a body.
/// Lifetime: the bytes in front and the body outlive the object.
class DataFrames {
 public:
  static constexpr std::size_t frames_max = 31;  // all pieces fit into one system call
  static constexpr std::size_t bytes_max = frames_max * frame_payload_default;

  /// `front` are the bytes in front of the frames; `body` has at most `bytes_max` bytes. The stream
  /// ends with the last frame if `ends` is true.
  DataFrames(Bytes front, std::uint32_t stream, Bytes body, bool ends) noexcept;
  DataFrames(const DataFrames&) = delete;
  DataFrames& operator=(const DataFrames&) = delete;

  /// Returns the bytes to write: the front, and the header and payload of each frame.
  std::span<const Bytes> pieces() const noexcept { return {pieces_.data(), 2 * count_ + 1}; }
  std::size_t count() const noexcept { return count_; }
  /// Returns the size of a payload.
  std::size_t size(std::size_t frame) const noexcept { return pieces_[2 * frame + 2].size(); }
  bool ends() const noexcept { return ends_; }

 private:
  std::array<std::array<char, frame_header_size>, frames_max> headers_;
  std::array<Bytes, 2 * frames_max + 1> pieces_;
  std::size_t count_ = 0;
  bool ends_;
};
char* write_rst_stream(std::uint32_t stream, H2Error error, char* out) noexcept;
/// Writes SETTINGS: `frame_header_size` bytes and `setting_size` bytes for each entry.
char* write_settings(std::span<const Setting> settings, char* out) noexcept;
char* write_settings_ack(char* out) noexcept;
/// Writes a PING with `opaque`, 8 bytes, and the flags, which are 0 or FrameFlag::ack.
char* write_ping(Bytes opaque, std::uint8_t flags, char* out) noexcept;
char* write_goaway(std::uint32_t last_stream, H2Error error, char* out) noexcept;
char* write_window_update(std::uint32_t stream, std::uint32_t increment, char* out) noexcept;
/// Writes PRIORITY_UPDATE for `stream`: `frame_header_size` + 4 bytes and the field value.
char* write_priority_update(std::uint32_t stream, std::string_view value, char* out) noexcept;

}  // namespace weir::http
