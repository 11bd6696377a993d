// A client of HTTP/1 that does not use Weir's parser and writer.
#pragma once

#include "tests/messages/carrier.hpp"
#include "tests/messages/message.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// Sends the request, and reads the response meanwhile. A response is `cut` if its framing is not
/// complete, or if the stream ends by a failure before a body without a length has ended.
/// Returns: the response; its status is 0 if none has come.
/// Cancel: returns what has arrived.
/// Lifetime: the arguments outlive the task.
Task<ReceivedResponse> exchange_http1(Stream& stream, Protocol protocol,
                                      const SentRequest& request);

}  // namespace weir::tests::messages
