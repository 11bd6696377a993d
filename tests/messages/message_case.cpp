#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

std::vector<MessageCase> message_cases() {
  std::vector<MessageCase> cases;
  add_body_cases(cases);
  add_end_cases(cases);
  add_field_cases(cases);
  add_method_cases(cases);
  return cases;
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
  return std::nullopt;
}

}  // namespace weir::tests::messages
