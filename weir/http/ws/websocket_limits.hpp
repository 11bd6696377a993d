// The limits, the compression and the close codes of WebSocket connections.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::http {

/// The close codes of RFC 6455 §7.4.1 and of the IANA registry. The enum can hold any code.
enum class WebSocketCloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,
  protocol_error = 1002,
  unsupported_data = 1003,
  no_status = 1005,  ///< a Close without a code; never sent
  abnormal = 1006,   ///< the connection ended without a Close; never sent
  invalid_data = 1007,
  policy_violation = 1008,
  message_too_big = 1009,
  extension_required = 1010,
  internal_error = 1011,
  service_restart = 1012,
  try_again_later = 1013,
  bad_gateway = 1014,
};

/// The limits of a WebSocket connection. Each comment ends with the reaction to a peer beyond the
/// limit.
struct WebSocketLimits {
  std::uint64_t message_bytes_max = 1024 * 1024;  ///< bytes of a message; close with 1009
  /// Bytes of messages that wait for the kernel to take them, from 1; send() waits. 0 counts as 1.
  std::size_t output_max = 64 * 1024;
  /// Silence of the peer after which it gets a ping. Duration::max(): no pings.
  Duration ping_interval = std::chrono::seconds(30);
  /// Time for the answer to a ping, or for any other bytes; close.
  Duration pong_timeout = std::chrono::seconds(20);
  /// Time in which the peer must take some of the bytes that wait; close.
  Duration write_timeout = std::chrono::seconds(20);
  /// Time for the Close of the peer after the own one; close of the connection. A handler that does
  /// not read is cancelled after this time, counted from the Close of the peer.
  Duration close_timeout = std::chrono::seconds(5);
};

/// The compression of messages (RFC 7692, permessage-deflate). It is used if both sides want it.
/// A message with secrets and with text of an attacker in it should not be compressed, because its
/// size tells about the secrets.
///
/// A side without a window compresses each message on its own. Its messages are larger, but it
/// needs no memory between them: the connections of a core share one compressor.
struct WebSocketCompression {
  /// The binary logarithm of the window of earlier messages that the own messages refer to, from 9
  /// to 15, or 0 for none. A connection with a window of 15 holds about 270 KiB for it.
  int send_window_bits = 0;
  /// The same for the messages of the peer, which the peer is told. A connection with a window
  /// holds it and 10 KiB, one without a window only while a message arrives. A client that cannot
  /// limit its window is told to use none.
  int receive_window_bits = 0;
  int level = 1;  ///< from 1 (fastest) to 9 (smallest)
  /// Shorter messages are sent as they are. Messages in pieces are compressed.
  std::size_t bytes_min = 128;
};

}  // namespace weir::http
