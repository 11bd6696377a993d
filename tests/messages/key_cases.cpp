// Cases about idempotency keys: a request that is sent again has its effect once.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

bool has_http1_upstream(const Carrier& carrier) {
  return carrier.way == Way::proxied_http_1_1;
}

SentRequest payment(Fields fields, std::string body = "7", std::string target = "/keyed/pay") {
  fields.emplace_back("Idempotency-Key", "a");
  return {.method = "POST",
          .target = std::move(target),
          .message = {.fields = std::move(fields), .body = {std::move(body)}}};
}

}  // namespace

void add_key_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const Fields ann{{"Cookie", "session=ann"}};
  const ExpectedFields replayed{.present = {{"Idempotency-Replayed", "true"}}};
  const ExpectedFields first{.absent = {"Idempotency-Replayed"}};
  add({.name = "ARepeatedKeyGetsTheSameResponse",
       .request = payment(ann),
       .response = {.body = "paid 7", .fields = first},
       .then = {{.request = payment(ann),
                 .response = {.body = "paid 7", .fields = replayed},
                 .handled = {}}}});
  add({.name = "AKeyBelongsToOneRequest",
       .request = payment(ann),
       .then = {{.request = payment(ann, "8"), .response = {.status = 422}, .handled = {}}}});
  add({.name = "KeysOfTwoOwnersAreDifferent",
       .request = payment(ann),
       .then = {
           {.request = payment({{"Cookie", "session=bob"}}), .response = {.fields = first}},
           {.request = payment({{"Authorization", "Bearer bob"}}), .response = {.fields = first}},
           {.request = payment(ann), .response = {.fields = replayed}, .handled = {}}}});
  add({.name = "AKeyNeedsAnOwner",
       .request = payment({{"X-Api-Key", "ann"}}),
       .response = {.status = 400},
       .handled = {}});
  SentRequest elsewhere = payment(ann);
  elsewhere.host = "other.test";
  add({.name = "KeysOfTwoHostsAreDifferent",
       .request = payment(ann),
       .then = {{.request = elsewhere, .response = {.fields = first}},
                {.request = payment(ann), .response = {.fields = replayed}, .handled = {}}},
       .options = {.proxy = {.preserve_host = true}}});
  // The effect may have happened.
  add({.name = "AKeyIsNotFreeWhenItsClientLeaves",
       .request = payment(ann, "7", "/keyed/slow"),
       .handled = ExpectedRequest{.end = End::cut},
       .departure = Exchange::Departure::when_the_handler_runs,
       .then = {{.request = payment(ann, "7", "/keyed/slow"),
                 .response = {.status = 409,
                              .fields = {.absent = {"Idempotency-Replayed", "Retry-After"}}},
                 .handled = {}}},
       .exclusions = {{&has_http1_upstream,
                       "the proxy ends its connection to the handler in order, "
                       "which cancels no handler"}}});
}

}  // namespace weir::tests::messages
