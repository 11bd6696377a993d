// The cases of the suite of messages: what a client sends, and what must arrive on every carrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/deployment_options.hpp"
#include "tests/messages/message.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/server_counters.hpp"

namespace weir::tests::messages {

/// The fields that a message must have and must not have.
struct ExpectedFields {
  Fields present = {};
  std::vector<std::string> absent = {};
};

struct ExpectedRequest {
  std::optional<std::string> body = {};
  std::optional<BodyKind> kind = {};
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

inline const Exclusion proxy_only{&is_direct, "the case is a rule of a proxy"};

/// A request, and what becomes of it.
struct Exchange {
  /// The moment at which the client leaves. It resets its connection before a response, and the
  /// next exchange begins when the handler was cancelled.
  enum class Departure : std::uint8_t { after_the_response, when_the_handler_runs };
  SentRequest request;
  ExpectedResponse response = {};  ///< not compared if the client leaves before
  /// The request that a handler records; nullopt: no such handler is called.
  std::optional<ExpectedRequest> handled = ExpectedRequest();
  Departure departure = Departure::after_the_response;
};

/// A MessageCase is written once, and runs on every carrier that can express it.
struct MessageCase {
  std::string name;
  SentRequest request;
  ExpectedResponse response = {};
  std::optional<ExpectedRequest> handled = ExpectedRequest();  ///< see Exchange::handled
  Exchange::Departure departure = Exchange::Departure::after_the_response;
  std::vector<Exchange> then = {};  ///< what follows, each by a new client
  /// Requests to /hold on the connection of the first request, which are open until its response
  /// has come.
  std::vector<SentRequest> meanwhile = {};
  DeploymentOptions options = {};
  /// Counters of the server of the handler that grow by one.
  std::vector<weir::detail::Counter http::ServerCounters::*> counted = {};
  /// Texts of which each is a part of a line of the log. There are no other lines.
  std::vector<std::string> logged = {};
  std::vector<Exclusion> exclusions = {};
};

/// Makes one case of exchanges that follow each other.
MessageCase in_order(std::string name, std::vector<Exchange> exchanges);

/// Returns all cases.
std::vector<MessageCase> message_cases();

// The cases of each subject.

void add_body_cases(std::vector<MessageCase>& cases);
void add_duplex_cases(std::vector<MessageCase>& cases);
void add_end_cases(std::vector<MessageCase>& cases);
void add_field_cases(std::vector<MessageCase>& cases);
void add_key_cases(std::vector<MessageCase>& cases);
void add_method_cases(std::vector<MessageCase>& cases);
void add_upload_cases(std::vector<MessageCase>& cases);
void add_validator_cases(std::vector<MessageCase>& cases);

/// Returns the reason for which the case does not run on the carrier: one of the case itself, or
/// what the protocol cannot express. nullopt: it runs.
std::optional<std::string> exclusion_of(const MessageCase& test, const Carrier& carrier);

/// What the handlers have received.
struct HandlerRecord {
  std::vector<ReceivedRequest> requests = {};
  std::size_t held = 0;  ///< requests to /hold
};

/// Returns the routes of all cases. Their handlers write the record.
http::Router message_routes(HandlerRecord& record);

}  // namespace weir::tests::messages
