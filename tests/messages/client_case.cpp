#include "tests/messages/client_case.hpp"

#include <string>
#include <utility>

#include "weir/http/syntax/client_error.hpp"

namespace weir::tests::messages {
namespace {

void add_redirect_cases(std::vector<ClientCase>& cases) {
  const auto moved = [](std::string location) {
    return SentResponse{.status = 302, .message = {.fields = {{"Location", std::move(location)}}}};
  };
  const SentResponse here{.message = {.body = {"here"}}};
  cases.push_back({.name = "ARedirectIsFollowed",
                   .response = moved("/second"),
                   .then = {moved("third?q"), here},
                   .result = {.body = "here"},
                   .targets = {"/", "/second", "/third?q"}});
  cases.push_back({.name = "ALocationOfRawTextIsEncoded",
                   .response = moved("/\xc3\xa4 b%/%41"),
                   .then = {here},
                   .result = {.body = "here"},
                   .targets = {"/", "/%C3%A4%20b%25/%41"}});
}

void add_large_body_cases(std::vector<ClientCase>& cases) {
  std::string large(900'000, 'x');
  large.back() = 'y';
  cases.push_back({.name = "LargeBodiesInBothDirections",
                   .request = {.method = "PUT", .message = {.body = {large}}},
                   .response = {.message = {.body = {large}}},
                   .result = {.body = large},
                   .received = {.body = large}});
  const std::vector<std::string> pieces{std::string(100'000, 'a'), std::string(100'000, 'b'),
                                        std::string(100'000, 'c')};
  const std::string all = pieces[0] + pieces[1] + pieces[2];
  for (const Length length : {Length::declared, Length::undeclared}) {
    const std::string of = length == Length::declared ? "OfAKnownLength" : "OfAnUnknownLength";
    cases.push_back({.name = "AnUploadInPieces" + of,
                     .request = {.method = "PUT", .message = {.body = pieces, .length = length}},
                     .received = {.body = all}});
  }
}

void add_empty_body_cases(std::vector<ClientCase>& cases) {
  const Fields length{{"Content-Length", "4"}};
  cases.push_back({.name = "AResponseToHeadHasNoBody",
                   .request = {.method = "HEAD"},
                   .response = {.message = {.fields = length}},
                   .result = {.body = "", .fields = {.present = length}}});
  cases.push_back({.name = "NoContentHasNoBody",
                   .response = {.status = 204},
                   .result = {.status = 204, .body = ""}});
}

void add_many_field_cases(std::vector<ClientCase>& cases) {
  const auto fields = [](int count) {
    Fields all;
    for (int each = 0; each < count; ++each) {
      all.emplace_back("X-" + std::to_string(each), std::to_string(each));
    }
    return all;
  };
  ClientCase many{.name = "ManyFieldsPassIfTheLimitIsRaised",
                  .response = {.message = {.fields = fields(280), .body = {"body"}}},
                  .result = {.body = "body", .fields = {.present = fields(280)}}};
  many.limits.head.headers_max = 300;
  cases.push_back(std::move(many));
  cases.push_back({.name = "MoreFieldsThanTheLimitFail",
                   .response = {.message = {.fields = fields(200), .body = {"body"}}},
                   .error = http::ClientError::bad_response});
}

}  // namespace

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
  add_redirect_cases(cases);
  add_large_body_cases(cases);
  add_empty_body_cases(cases);
  add_many_field_cases(cases);
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
