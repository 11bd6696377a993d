// A client of HTTP/2 that sends one request.
#pragma once

#include "tests/messages/message.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// Sends the request on a stream of a new connection, and reads the response meanwhile.
/// Returns: the response; its status is 0 if none has come.
/// Cancel: returns what has arrived.
/// Lifetime: the arguments outlive the task.
Task<ReceivedResponse> exchange_http2(Stream& stream, const SentRequest& request);

}  // namespace weir::tests::messages
