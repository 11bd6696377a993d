// Cases of responses that come before the end of the request's body, to clients that read nothing
// before they have sent what they have.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

bool is_memory_before_http1(const Carrier& carrier) {
  return carrier.protocol == Protocol::memory && carrier.way == Way::proxied_http_1_1;
}

}  // namespace

void add_upload_cases(std::vector<MessageCase>& cases) {
  const auto upload = [](std::string target, SentMessage message) {
    return SentRequest{.method = "POST",
                       .target = std::move(target),
                       .message = std::move(message),
                       .reading = SentRequest::Reading::after_sending};
  };
  const auto early = [&](int status, std::string target, SentMessage message) {
    return Exchange{.request = upload(std::move(target), std::move(message)),
                    .response = {.status = status},
                    .handled = {}};
  };
  // 2 MiB are more than the buffers of a server take.
  const SentMessage known{.body = {std::string(64 * 1024, 'y')}, .body_repeats = 32};
  SentMessage unknown = known;
  unknown.length = Length::undeclared;
  SentMessage large_head = known;
  large_head.fields = {{"X", std::string(70'000, 'x')}};
  cases.push_back(in_order("AnEarlyAnswerReachesAClientThatSendsOn",
                           {early(413, "/limited", known), early(409, "/refuse", known),
                            early(429, "/read-a-part", known), early(413, "/unknown", known)}));
  cases.push_back(in_order(
      "ARejectionOfTheHeadReachesAClientThatSendsOn",
      {early(414, "/" + std::string(9'000, 'x'), known), early(431, "/limited", large_head)}));
  cases.push_back(in_order("AnEarlyAnswerReachesAClientThatSendsChunks",
                           {early(409, "/refuse", unknown), early(200, "/ignore", unknown),
                            early(429, "/read-a-part", unknown)}));
  Exchange cut = early(413, "/limited", unknown);
  cut.handled = ExpectedRequest{.end = End::cut};
  cases.back().then.push_back(cut);
  // The response to /refuse has no Connection: close, but the server closes behind it. A client in
  // memory is fast enough for the next request to meet this close.
  cases.back().exclusions = {{&is_memory_before_http1,
                              "the proxy may use a connection again that its upstream closes after "
                              "an early answer"}};
  const SentRequest held{.method = "POST",
                         .target = "/hold",
                         .message = {.body = {std::string(256 * 1024, 'z')}, .end = End::open}};
  const std::string several_windows(384 * 1024, 'y');
  cases.push_back(
      {.name = "UploadsThatNobodyReadsDelayNoOther",
       .request = {.method = "POST", .target = "/echo", .message = {.body = {several_windows}}},
       .response = {.body = several_windows},
       .meanwhile = std::vector<SentRequest>(16, held)});
}

}  // namespace weir::tests::messages
