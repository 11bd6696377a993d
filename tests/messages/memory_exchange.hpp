// The client of a MemoryCarrier.
#pragma once

#include <vector>

#include "tests/messages/message.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// Sends a request to `server` over a carrier of its own, whose handler runs in `scope`. Requests
/// of `before` begin first, and stay open until the response has ended.
/// Returns: the response.
/// Cancel: the client leaves; returns what has come.
Task<ReceivedResponse> exchange_memory(http::ServerState& server, Scope& scope,
                                       const SentRequest& request,
                                       const std::vector<SentRequest>& before);

}  // namespace weir::tests::messages
