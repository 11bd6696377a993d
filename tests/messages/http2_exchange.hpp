// A client of HTTP/2 that sends one request.
#pragma once

#include <vector>

#include "tests/messages/message.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// Sends the requests of `before` and then `request` on streams of a new connection. Reads the
/// response to `request` meanwhile.
/// Returns: the response; its status is 0 if none has come.
/// Cancel: returns what has arrived.
/// Lifetime: the arguments outlive the task.
Task<ReceivedResponse> exchange_http2(Stream& stream, const SentRequest& request,
                                      const std::vector<SentRequest>& before);

}  // namespace weir::tests::messages
