// Cases about the bodies of messages, whose length the carrier knows or not.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

void add_body_cases(std::vector<MessageCase>& cases) {
  const std::string large(40'000, 'x');
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "GetWithoutABody",
       .request = {.target = "/echo/a"},
       .response = {.body = "", .fields = {.present = {{"Content-Length", "0"}}}},
       .handled = ExpectedRequest{.body = ""}});
  add({.name = "PostOfAKnownLength",
       .request = {.method = "POST", .target = "/echo", .message = {.body = {"a body", large}}},
       .response = {.body = "a body" + large},
       .handled = ExpectedRequest{.body = "a body" + large}});
  add({.name = "PostOfAnUnknownLength",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.body = {"a body", large}, .length = Length::undeclared}},
       .response = {.body = "a body" + large},
       .handled = ExpectedRequest{.body = "a body" + large}});
  for (const std::string method :
       {"GET", "DELETE", "OPTIONS", "PUT", "PATCH", "QUERY", "PROPFIND"}) {
    add({.name = "ABodyOfUnknownLengthWith" + method,
         .request = {.method = method,
                     .target = "/echo",
                     .message = {.body = {R"({"scroll_id":"abc"})"}, .length = Length::undeclared}},
         .response = {.body = R"({"scroll_id":"abc"})"},
         .handled = ExpectedRequest{.body = R"({"scroll_id":"abc"})"}});
  }
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
