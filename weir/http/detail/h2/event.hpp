// The events of an HTTP/2 session: what the frames of the peer mean to the carrier.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h2/frame.hpp"

namespace weir::http {

class H2Stream;

/// One event of a session.
struct H2Event {
  enum class Kind : std::uint8_t {
    need_more,  ///< the input is used up
    open,       ///< the field block of a new stream; accept() or reject() follows
    headers,    ///< the field block of a response; only for clients
    trailers,   ///< the field block of the trailers of `stream`
    /// A field block that must be decoded for the compression state only. If there is a `stream`,
    /// it was reset with `error`.
    discarded,
    data,      ///< bytes of the body of `stream`; consume() returns them to the window
    reset,     ///< `stream` was reset by the peer, or by the session for an error of the peer
    settings,  ///< peer() has changed
    ping_ack,  ///< the answer to send_ping()
    goaway,    ///< the peer handles no stream above `stream_id`
    delay,     ///< the work account is empty; call again with the same input after `delay`
    failed,    ///< the connection has ended with `error`; send the output and close
  };
  Kind kind = Kind::need_more;
  bool end_stream = false;  ///< the peer sends nothing more on the stream
  H2Error error = {};
  H2Stream* stream = nullptr;
  std::uint32_t stream_id = 0;
  std::size_t consumed = 0;  ///< bytes of the input that are finished
  Duration delay{};
  Bytes bytes;  ///< valid until the next call of next(); data is a view into the input
};

}  // namespace weir::http
