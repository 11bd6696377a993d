// Cases about the bodies of messages, whose length the carrier knows or not.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

/// The carrier says if a request has a body, whatever the method is.
void add_any_method_cases(std::vector<MessageCase>& cases) {
  const std::string query = R"({"scroll_id":"abc"})";
  std::vector<Exchange> unknown;
  std::vector<Exchange> known;
  std::vector<Exchange> none;
  for (const std::string method :
       {"GET", "DELETE", "OPTIONS", "POST", "PUT", "PATCH", "QUERY", "PROPFIND", "BREW"}) {
    const SentRequest request{.method = method, .target = "/echo"};
    unknown.push_back(
        {.request = request,
         .response = {.body = query},
         .handled = ExpectedRequest{.body = query, .kind = BodyKind::unknown_length}});
    unknown.back().request.message = {.body = {query}, .length = Length::undeclared};
    known.push_back({.request = request,
                     .response = {.body = query},
                     .handled = ExpectedRequest{.body = query, .kind = BodyKind::known_length}});
    known.back().request.message = {.body = {query}};
    none.push_back({.request = request,
                    .response = {.body = "", .fields = {.present = {{"Content-Length", "0"}}}},
                    .handled = ExpectedRequest{.body = "", .kind = BodyKind::none}});
  }
  cases.push_back(in_order("ABodyOfAnUnknownLengthHasAnyMethod", std::move(unknown)));
  cases.push_back(in_order("ABodyOfAKnownLengthHasAnyMethod", std::move(known)));
  cases.push_back(in_order("AnyMethodMayHaveNoBody", std::move(none)));
}

}  // namespace

void add_body_cases(std::vector<MessageCase>& cases) {
  std::string large;  // bytes of every value
  while (large.size() < 100'000) large += static_cast<char>(large.size() % 251);
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "PostOfAKnownLength",
       .request = {.method = "POST", .target = "/echo", .message = {.body = {"a body", large}}},
       .response = {.body = "a body" + large,
                    .fields = {.present = {{"Content-Length", std::to_string(6 + large.size())}}}},
       .handled = ExpectedRequest{.body = "a body" + large, .kind = BodyKind::known_length}});
  add({.name = "PostOfAnUnknownLength",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.body = {"a body", large}, .length = Length::undeclared}},
       .response = {.body = "a body" + large},
       .handled = ExpectedRequest{.body = "a body" + large, .kind = BodyKind::unknown_length}});
  add_any_method_cases(cases);
  add({.name = "HeadHasNoBody",
       .request = {.method = "HEAD", .target = "/echo"},
       .response = {.body = ""},
       .handled = ExpectedRequest{.body = ""}});
  add({.name = "NoContent",
       .request = {.target = "/none"},
       .response = {.status = 204, .body = "", .fields = {.absent = {"Content-Length"}}},
       .handled = {}});
  add({.name = "AProblemForAnUnknownPath",
       .request = {.target = "/unknown"},
       .response = {.status = 404,
                    .fields = {.present = {{"Content-Type", "application/problem+json"}}}},
       .handled = {}});
  add({.name = "ABodyAboveTheLimitOfItsRoute",
       .request = {.method = "POST",
                   .target = "/limited",
                   .message = {.body = {"more than ten bytes"}}},
       .response = {.status = 413},
       .handled = {}});
  add({.name = "ABodyOfUnknownLengthAboveTheLimit",
       .request = {.method = "POST",
                   .target = "/limited",
                   .message = {.body = {"more than ten bytes"}, .length = Length::undeclared}},
       .response = {.status = 413},
       .handled = ExpectedRequest{.end = End::cut}});
}

}  // namespace weir::tests::messages
