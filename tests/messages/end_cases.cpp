// Cases about the ends of messages: what fails, what is refused, and what comes early.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

using Counters = http::ServerCounters;

/// Cases of streamed responses.
void add_stream_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "AWholeStream",
       .request = {.target = "/whole"},
       .response = {.body = "7 bytes whole"},
       .handled = {}});
  add({.name = "AStreamThatFailsBeforeItsFirstByte",
       .request = {.target = "/fail-early"},
       .response = {.status = 500},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"weir: GET /fail-early: response body incomplete: bad configuration"}});
  add({.name = "AStreamThatFails",
       .request = {.target = "/fail"},
       .response = {.body = "7 bytes", .end = End::cut},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"weir: GET /fail: response body incomplete: malformed input"}});
  add({.name = "AStreamThatThrows",
       .request = {.target = "/throw-late"},
       .response = {.body = "7 bytes", .end = End::cut},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"weir: GET /throw-late: handler failed: exception: internal detail"}});
  add({.name = "AStreamThatThrowsBeforeItsTask",
       .request = {.target = "/throw"},
       .response = {.status = 500},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"weir: GET /throw: handler failed: exception: no task"}});
  add({.name = "AStreamThatIsShorterThanItsLength",
       .request = {.target = "/too-short"},
       .response = {.end = End::cut},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {
           "weir: GET /too-short: response body incomplete: it is shorter than its length"}});
  add({.name = "AStreamThatIsLongerThanItsLength",
       .request = {.target = "/too-long"},
       .response = {.body = "7 bytes", .end = End::cut},
       .handled = {},
       .logged = {"weir: GET /too-long: response body exceeds its length"}});
  add({.name = "TextOfAPeerIsOneLineOfTheLog",
       .request = {.target = "/throw/a%0Aweir:%20b%1B%5B31m%C2%85%C2%9B%E2%80%AE"},
       .response = {.status = 500},
       .handled = {},
       .counted = {&Counters::handler_failures},
       .logged = {"handler failed: exception: a"}});
}

}  // namespace

void add_end_cases(std::vector<MessageCase>& cases) {
  const std::string large(40'000, 'x');
  const std::string longer(100'000, 'x');  // than what a server reads and drops first
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "AnErrorBeforeTheEndOfTheUpload",
       .request = {.method = "POST",
                   .target = "/refuse",
                   .message = {.body = {large}, .end = End::open}},
       .response = {.status = 409},
       .handled = {}});
  add({.name = "ASuccessBeforeTheEndOfTheUpload",
       .request = {.method = "POST",
                   .target = "/ignore",
                   .message = {.body = {longer}, .end = End::open}},
       .response = {.body = "enough"},
       .handled = {}});
  add_stream_cases(cases);
  SentMessage megabytes{.body = {std::string(64 * 1024, 'y')}, .body_repeats = 80};
  add({.name = "ALargeBodyAboveTheLimitOfItsRoute",
       .request = {.method = "POST", .target = "/limited", .message = megabytes},
       .response = {.status = 413},
       .handled = {}});
  megabytes.length = Length::undeclared;
  add({.name = "ALargeBodyOfUnknownLengthAboveTheLimit",
       .request = {.method = "POST", .target = "/limited", .message = megabytes},
       .response = {.status = 413},
       .handled = ExpectedRequest{.end = End::cut}});
}

}  // namespace weir::tests::messages
