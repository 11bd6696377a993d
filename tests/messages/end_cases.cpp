// Cases about the ends of messages: what fails, what is refused, and what comes early.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

using Counters = http::ServerCounters;

}  // namespace

void add_end_cases(std::vector<MessageCase>& cases) {
  const std::string large(40'000, 'x');
  const std::vector<std::string> megabytes(80, std::string(64 * 1024, 'y'));
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "AnErrorBeforeTheEndOfTheUpload",
       .request = {.method = "POST",
                   .target = "/refuse",
                   .message = {.body = {large}, .end = End::open}},
       .response = {.status = 409},
       .handled = {}});
  add({.name = "AStreamThatFails",
       .request = {.target = "/fail"},
       .response = {.end = End::cut},
       .handled = {},
       .counted = {&Counters::handler_failures}});
  add({.name = "AStreamThatThrowsBeforeItsTask",
       .request = {.target = "/throw"},
       .response = {.status = 500},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"no task"}});
  add({.name = "ALargeBodyAboveTheLimitOfItsRoute",
       .request = {.method = "POST", .target = "/limited", .message = {.body = megabytes}},
       .response = {.status = 413},
       .handled = {}});
  add({.name = "ALargeBodyOfUnknownLengthAboveTheLimit",
       .request = {.method = "POST",
                   .target = "/limited",
                   .message = {.body = megabytes, .length = Length::undeclared}},
       .response = {.status = 413},
       .handled = ExpectedRequest{.end = End::cut}});
}

}  // namespace weir::tests::messages
