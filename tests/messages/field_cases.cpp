// Cases about the fields of heads and of trailers that pass a proxy.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

bool is_direct(const Carrier& carrier) {
  return carrier.way == Way::direct;
}
const Exclusion proxy_only{&is_direct, "the case is a rule of a proxy"};

std::string only_letters(std::string text) {
  std::erase(text, '-');
  return text;
}

}  // namespace

void add_field_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "ATrailerOfAResponse",
       .request = {.target = "/trailer", .message = {.fields = {{"TE", "trailers"}}}},
       .response = {.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}},
       .handled = {}});
  add({.name = "ATrailerOfARequest",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.body = {"body"},
                               .length = Length::undeclared,
                               .trailers = {{"X-Sum", "4"}}}},
       .handled = ExpectedRequest{.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}}});
  for (const std::string name :
       {"X-Forwarded-For", "X-Real-IP", "Forwarded", "Authorization", "Proxy-Authorization"}) {
    add({.name = "TheTrailerIsNotPassedOn" + only_letters(name),
         .request = {.method = "POST",
                     .target = "/echo",
                     .message = {.body = {"body"},
                                 .length = Length::undeclared,
                                 .trailers = {{name, "1.2.3.4"}, {"X-Sum", "4"}}}},
         .handled = ExpectedRequest{.body = "body",
                                    .trailers = {.present = {{"X-Sum", "4"}}, .absent = {name}}},
         .exclusions = {proxy_only}});
  }
  add({.name = "TheClientInventsNoForwardedFor",
       .request = {.target = "/echo", .message = {.fields = {{"X-Forwarded-For", "6.6.6.6"}}}},
       .handled = ExpectedRequest{.fields = {.present = {{"X-Forwarded-For", "127.0.0.1"}}}},
       .exclusions = {proxy_only}});
  add({.name = "AGrpcClientMayAskForTrailers",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.fields = {{"TE", "trailers"}}}},
       .handled = ExpectedRequest{.fields = {.present = {{"TE", "trailers"}}}}});
  add({.name = "MaxForwardsEndsAtTheProxy",
       .request = {.method = "OPTIONS",
                   .target = "/echo",
                   .message = {.fields = {{"Max-Forwards", "0"}}}},
       .response = {.status = 204},
       .handled = {},
       .exclusions = {proxy_only}});
  add({.name = "MaxForwardsCountsDown",
       .request = {.method = "OPTIONS",
                   .target = "/echo",
                   .message = {.fields = {{"Max-Forwards", "5"}}}},
       .handled = ExpectedRequest{.fields = {.present = {{"Max-Forwards", "4"}}}},
       .exclusions = {proxy_only}});
  add({.name = "TraceShowsNothing",
       .request = {.method = "TRACE", .target = "/echo"},
       .response = {.status = 405},
       .handled = {},
       .exclusions = {proxy_only}});
}

}  // namespace weir::tests::messages
