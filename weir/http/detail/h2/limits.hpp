// The limits of one HTTP/2 connection.
#pragma once

#include <cstdint>

#include "weir/http/detail/h2/work_account.hpp"

namespace weir::http {

/// The windows of a connection and of its streams until SETTINGS or WINDOW_UPDATE change them.
inline constexpr std::uint32_t window_default = 65'535;
/// The largest window (RFC 9113 §6.9.1).
inline constexpr std::int64_t window_max = 0x7FFFFFFF;

/// The limits of one connection. Each comment ends with the reaction to a peer beyond the limit. A
/// value outside of the range in its comment counts as the nearest one within it.
struct H2Limits {
  std::uint32_t streams_max = 128;  ///< open streams, from 1 to 2^30; REFUSED_STREAM
  /// Bytes not consumed on a stream, from 1 to 2^31 - 1 (RFC 9113 §6.5.2); flow control. In a
  /// server, the window of a body doubles while its handler reads. All windows together grow by at
  /// most half of connection_window.
  std::uint32_t stream_window = 64 * 1024;
  /// Bytes not consumed on all streams, from 65,535 to 2^31 - 1; flow control. In a server, a body
  /// that its handler does not read holds at most its share, a part of `streams_max`. Its other
  /// bytes count only for the window of its stream, so that it does not keep the other bodies from
  /// arriving.
  std::uint32_t connection_window = 1024 * 1024;
  /// Encoded bytes of a field block, from 1 KiB to 16 MiB, and at least `field_list_max`; close.
  std::uint32_t block_bytes_max = 64 * 1024;
  /// Frames of a field block: HEADERS and its CONTINUATION, up to 65,534, and at least those of
  /// 16 KiB that such a block needs; close.
  std::uint32_t block_frames_max = 16;
  /// Bytes of the bodies that handlers collect at the same time, above the window of each stream.
  /// One more body may always grow, so that its request ends; flow control. The carrier's.
  std::uint64_t bodies_max = 4 * 1024 * 1024;
  /// SETTINGS_MAX_HEADER_LIST_SIZE, at most 16 MiB, for heads and trailers; each field counts 32
  /// bytes more than its text. A head is also bounded by HeadLimits; the carrier's.
  std::uint32_t field_list_max = 64 * 1024;
  /// Bytes of control frames that wait to be sent, from 256; close.
  std::uint32_t control_bytes_max = 32 * 1024;
  /// Bytes that wait to be sent, from 1; send_data() stops, and the carrier stops to read.
  std::uint32_t output_max = 64 * 1024;
  WorkLimits work = {};           ///< delay, then close
  bool connect_protocol = false;  ///< announces extended CONNECT (RFC 8441)
};

/// Returns `limits` with each value in its range. The owner of the limits of a session calls it,
/// because the session refers to them.
H2Limits in_range(const H2Limits& limits) noexcept;

/// Returns the most streams that a peer can make a session hold. A stream that was reset counts
/// until its handler has ended, so there are some more than `streams_max`.
constexpr std::uint32_t streams_held_max(const H2Limits& limits) noexcept {
  return limits.streams_max + limits.streams_max / 4 + 1;
}

}  // namespace weir::http
