// The cases of the suite of messages: what a client sends, and what must arrive on every carrier.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/message.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/server_state.hpp"

namespace weir::tests::messages {

/// The fields that a message must have and must not have.
struct ExpectedFields {
  Fields present = {};
  std::vector<std::string> absent = {};
};

struct ExpectedRequest {
  std::optional<std::string> body = {};
  ExpectedFields fields = {};
  ExpectedFields trailers = {};
  End end = End::complete;
};

struct ExpectedResponse {
  int status = 200;
  std::optional<std::string> body = {};
  ExpectedFields fields = {};
  ExpectedFields trailers = {};
  End end = End::complete;
};

/// A carrier on which a case does not run, with the reason.
struct Exclusion {
  bool (*matches)(const Carrier& carrier);
  const char* reason;
};

/// A MessageCase is written once, and runs on every carrier that can express it.
struct MessageCase {
  std::string name;
  SentRequest request;
  ExpectedResponse response = {};
  /// The request that a handler of /echo or /limited gets; nullopt: none is called.
  std::optional<ExpectedRequest> handled = ExpectedRequest();
  /// Counters of the server of the handler that grow by one.
  std::vector<weir::detail::Counter http::ServerCounters::*> counted = {};
  std::vector<std::string> logged = {};  ///< texts of which each is a part of a line of the log
  std::vector<Exclusion> exclusions = {};
};

/// Returns all cases.
std::vector<MessageCase> message_cases();

// The cases of each subject.

void add_body_cases(std::vector<MessageCase>& cases);
void add_end_cases(std::vector<MessageCase>& cases);
void add_field_cases(std::vector<MessageCase>& cases);
void add_method_cases(std::vector<MessageCase>& cases);

/// Returns the reason for which the case does not run on the carrier: one of the case itself, or
/// what the protocol cannot express. nullopt: it runs.
std::optional<std::string> exclusion_of(const MessageCase& test, const Carrier& carrier);

/// Returns the routes of all cases. Their handlers add the requests to `received`.
http::Router message_routes(std::vector<ReceivedRequest>& received);

}  // namespace weir::tests::messages
