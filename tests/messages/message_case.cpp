#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

std::vector<MessageCase> message_cases() {
  std::vector<MessageCase> cases;
  add_body_cases(cases);
  add_duplex_cases(cases);
  add_end_cases(cases);
  add_field_cases(cases);
  add_key_cases(cases);
  add_method_cases(cases);
  add_upload_cases(cases);
  add_validator_cases(cases);
  return cases;
}

MessageCase in_order(std::string name, std::vector<Exchange> exchanges) {
  const Exchange& first = exchanges.front();
  MessageCase test{.name = std::move(name),
                   .request = first.request,
                   .response = first.response,
                   .handled = first.handled,
                   .departure = first.departure};
  test.then.assign(exchanges.begin() + 1, exchanges.end());
  return test;
}

std::optional<std::string> exclusion_of(const MessageCase& test, const Carrier& carrier) {
  for (const Exclusion& each : test.exclusions) {
    if (each.matches(carrier)) return each.reason;
  }
  const SentMessage& message = test.request.message;
  const bool undeclared = message.length == Length::undeclared && !message.body.empty();
  if (carrier.protocol == Protocol::http_1_0 && undeclared) {
    return "HTTP/1.0 has no request body without a length";
  }
  if (carrier.protocol == Protocol::http_1_0 && !test.response.trailers.present.empty()) {
    return "HTTP/1.0 has no trailers";
  }
  if (carrier.protocol == Protocol::http_2 &&
      test.request.reading == SentRequest::Reading::after_sending) {
    return "a client of HTTP/2 has to read windows while it sends";
  }
  const bool is_http1 =
      carrier.protocol == Protocol::http_1_0 || carrier.protocol == Protocol::http_1_1;
  if (is_http1 && !test.meanwhile.empty()) {
    return "HTTP/1 has one request at a time on a connection";
  }
  if (carrier.protocol == Protocol::memory && !test.meanwhile.empty()) {
    return "requests in memory share no connection";
  }
  return std::nullopt;
}

}  // namespace weir::tests::messages
