// The cases of the suite of messages for the client: what a server sends, and what the client gets.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "tests/messages/message.hpp"
#include "tests/messages/message_case.hpp"
#include "weir/http/client/client_limits.hpp"

namespace weir::tests::messages {

/// What the client of Weir returns for a request.
struct ClientResult {
  std::error_code error = {};  ///< no error: `response` is complete
  ReceivedResponse response = {};
};

/// The server of a case of the client.
struct ServerCarrier {
  Protocol protocol = Protocol::http_1_1;
  Layer layer = Layer::plain;
};

/// A ClientCase is written once, and runs on every carrier that can express it.
struct ClientCase {
  std::string name;
  SentRequest request = {};
  SentResponse response = {};
  std::vector<SentResponse> then = {};  ///< responses to the next requests; the last one repeats
  http::ResponseLimits limits = {};
  std::error_code error = {};  ///< the error of the client
  ExpectedResponse result = {};
  ExpectedRequest received = {};
  std::vector<std::string> targets = {"/"};  ///< of the requests that the server gets
};

std::vector<ClientCase> client_cases();

/// Returns the reason for which the case does not run on the carrier: what the protocol cannot
/// express. nullopt: it runs.
std::optional<std::string> exclusion_of(const ClientCase& test, const ServerCarrier& carrier);

}  // namespace weir::tests::messages
