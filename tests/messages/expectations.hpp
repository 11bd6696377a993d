// Compares messages that have arrived with those that a case expects.
#pragma once

#include "tests/messages/message.hpp"
#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

void expect_response(const ReceivedResponse& response, const ExpectedResponse& expected);
void expect_request(const ReceivedRequest& request, const ExpectedRequest& expected);

}  // namespace weir::tests::messages
