// Cases of responses that are written while their requests arrive.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

void add_duplex_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](std::string name, SentMessage message, std::string body) {
    cases.push_back(
        {.name = std::move(name),
         .request = {.method = "POST", .target = "/duplex", .message = std::move(message)},
         .response = {.body = body},
         .handled = ExpectedRequest{.body = body}});
  };
  const std::string large(100'000, 'd');
  add("ADuplexEchoOfAKnownLength", {.body = {"first", large, "last"}}, "first" + large + "last");
  add("ADuplexEchoOfAnUnknownLength",
      {.body = {"first", large, "last"}, .length = Length::undeclared}, "first" + large + "last");
  add("ADuplexEchoOfNothing", {.body = {}}, "");
  add("ADuplexEchoWithTrailers",
      {.body = {"body"}, .length = Length::undeclared, .trailers = {{"X-Sum", "4"}}}, "body");
  cases.back().response.trailers.present = {{"X-Sum", "4"}};
  // Neither side has room for all of it.
  std::string many;
  for (int count = 0; count < 12; ++count) many += std::string(64 * 1024, 'm');
  add("ADuplexEchoOfManyWindows", {.body = {std::string(64 * 1024, 'm')}, .body_repeats = 12},
      many);
  cases.push_back({.name = "ADuplexResponseThatReadsNothing",
                   .request = {.method = "POST",
                               .target = "/duplex-unread",
                               .message = {.body = {"nobody reads this"}}},
                   .response = {.body = "enough"},
                   .handled = {}});
  cases.push_back({.name = "ADuplexResponseToABodyAboveTheLimit",
                   .request = {.method = "POST",
                               .target = "/duplex-limited",
                               .message = {.body = {"more than ten bytes"}}},
                   .response = {.status = 413},
                   .handled = {}});
  cases.push_back(
      {.name = "ADuplexResponseThatFails",
       .request = {.method = "POST", .target = "/duplex-fail", .message = {.body = {"a body"}}},
       .response = {.body = "7 bytes", .end = End::cut},
       .handled = {},
       .counted = {&http::ServerCounters::handler_failures},
       .logged = {"weir: POST /duplex-fail: response body incomplete: malformed input"}});
}

}  // namespace weir::tests::messages
