// Writes messages of HTTP/1 to a stream, without Weir's writer.
#pragma once

#include <cstdint>
#include <string>

#include "tests/messages/message.hpp"
#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

enum class Http1Framing : std::uint8_t {
  none,    ///< no body, or one that the end of the connection ends
  length,  ///< Content-Length; a message that is not complete has one more byte, which never comes
  chunks,
};

/// Writes a message: `start` with the line of a request or a response, its fields, and its body as
/// far as `message.end` says. The caller closes the stream.
/// Errors: those of Stream::write().
/// Cancel: returns; a part may have been sent.
/// Lifetime: the stream and the message outlive the task.
Task<Result<>> write_http1(Stream& stream, std::string start, const SentMessage& message,
                           Http1Framing framing);

}  // namespace weir::tests::messages
