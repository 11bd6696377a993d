#include "tests/messages/client_case.hpp"

#include "weir/http/syntax/client_error.hpp"

namespace weir::tests::messages {

std::vector<ClientCase> client_cases() {
  using http::ClientError;
  const std::string large(40'000, 'x');
  std::vector<ClientCase> cases;
  const auto add = [&cases](ClientCase test) { cases.push_back(std::move(test)); };
  add({.name = "ABodyOfAKnownLength",
       .response = {.message = {.fields = {{"X-One", "1"}}, .body = {"a body", large}}},
       .result = {.body = "a body" + large, .fields = {.present = {{"X-One", "1"}}}}});
  add({.name = "ABodyOfAnUnknownLength",
       .response = {.message = {.body = {"a body", large}, .length = Length::undeclared}},
       .result = {.body = "a body" + large}});
  add({.name = "ABodyOfAKnownLengthThatIsCut",
       .response = {.message = {.body = {"a part"}, .end = End::cut}},
       .error = ClientError::connection_lost});
  add({.name = "ABodyOfAnUnknownLengthThatIsCut",
       .response = {.message = {.body = {"a part"}, .length = Length::undeclared, .end = End::cut}},
       .error = ClientError::connection_lost});
  add({.name = "TrailersOfAResponse",
       .response = {.message = {.body = {"body"},
                                .length = Length::undeclared,
                                .trailers = {{"X-Sum", "4"}}}},
       .result = {.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}}});
  add({.name = "AnUploadOfAKnownLength",
       .request = {.method = "PUT", .message = {.body = {"a body", large}}},
       .received = {.body = "a body" + large}});
  add({.name = "AnUploadOfAnUnknownLength",
       .request = {.method = "PUT",
                   .message = {.body = {"a body", large}, .length = Length::undeclared}},
       .received = {.body = "a body" + large}});
  add({.name = "AnErrorDuringTheUpload",
       .request = {.method = "POST", .message = {.body = {"a part"}, .end = End::open}},
       .response = {.status = 413,
                    .message = {.body = {"too large"}},
                    .moment = SentResponse::Moment::after_its_head},
       .result = {.status = 413, .body = "too large"},
       .received = {.end = End::cut}});
  add({.name = "ASuccessDuringTheUpload",
       .request = {.method = "POST", .message = {.body = {"a part"}, .end = End::open}},
       .response = {.message = {.body = {"enough"}},
                    .moment = SentResponse::Moment::after_its_head},
       .result = {.body = "enough"},
       .received = {.end = End::cut}});
  return cases;
}

std::optional<std::string> exclusion_of(const ClientCase& test, const ServerCarrier& carrier) {
  const SentMessage& answer = test.response.message;
  if (carrier.protocol == Protocol::http_1_0) {
    if (!answer.trailers.empty()) return "HTTP/1.0 has no trailers";
    if (answer.length == Length::undeclared && answer.end == End::cut) {
      return "HTTP/1.0 has no mark of the end of a body without a length";
    }
    if (test.request.message.length == Length::undeclared) {
      return "the client does not know before its request that the server speaks HTTP/1.0";
    }
  }
  return std::nullopt;
}

}  // namespace weir::tests::messages
