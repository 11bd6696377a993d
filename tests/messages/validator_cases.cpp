// Cases about validators: the tags of what is sent, the conditions of requests, and codings.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"
#include "weir/compression/test/contents_fixture.hpp"
#include "weir/web/encoding/decompress_requests.hpp"

namespace weir::tests::messages {
namespace {

void add_condition_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const ExpectedResponse same{
      .status = 304,
      .body = "",
      .fields = {.present = {{"ETag", "\"v1\""}}, .absent = {"Content-Length"}}};
  add({.name = "AKnownVersionIsNotSentAgain",
       .request = {.target = "/pages/tagged",
                   .message = {.fields = {{"If-None-Match", "W/\"v1\""}}}},
       .response = same,
       .handled = {}});
  add({.name = "TwoFieldsOfTagsAreOneList",
       .request = {.target = "/pages/tagged",
                   .message = {.fields = {{"If-None-Match", "\"v0\""},
                                          {"If-None-Match", "\"v1\""}}}},
       .response = same,
       .handled = {}});
  add({.name = "AnotherVersionIsNotReplaced",
       .request = {.method = "PUT",
                   .target = "/version",
                   .message = {.fields = {{"If-Match", "\"v0\""}}}},
       .response = {.status = 412},
       .handled = {}});
  // A date in two fields is malformed, and neither of them wins.
  const std::string before = "Sun, 06 Nov 1994 08:49:36 GMT";
  const std::string later = "Sun, 06 Nov 1994 08:49:38 GMT";
  add({.name = "ADateInTwoFieldsIsNoCondition",
       .request = {.method = "PUT",
                   .target = "/version",
                   .message = {.fields = {{"If-Unmodified-Since", later},
                                          {"If-Unmodified-Since", before}}}},
       .response = {.body = "replaced"},
       .handled = {},
       .then = {{.request = {.method = "PUT",
                             .target = "/version",
                             .message = {.fields = {{"If-Unmodified-Since", before},
                                                    {"If-Unmodified-Since", later}}}},
                 .response = {.body = "replaced"},
                 .handled = {}},
                {.request = {.method = "PUT",
                             .target = "/version",
                             .message = {.fields = {{"If-Unmodified-Since", before}}}},
                 .response = {.status = 412},
                 .handled = {}}}});
}

/// Cases of responses that compress() encodes.
void add_compression_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const ExpectedFields coded{
      .present = {{"ETag", "W/\"v1\""}, {"Content-Encoding", "gzip"}, {"Vary", "Accept-Encoding"}}};
  const Fields accepting{{"Accept-Encoding", "gzip"}};
  Fields known = accepting;
  known.emplace_back("If-None-Match", "W/\"v1\"");
  std::vector<Exchange> exchanges;
  for (const std::string method : {"GET", "HEAD"}) {
    const auto ask = [&](const Fields& fields) {
      return SentRequest{
          .method = method, .target = "/pages/tagged", .message = {.fields = fields}};
    };
    exchanges.push_back({.request = ask(accepting), .response = {.fields = coded}, .handled = {}});
    exchanges.push_back(
        {.request = ask(known),
         .response = {.status = 304,
                      .body = "",
                      .fields = {.present = {{"ETag", "W/\"v1\""}, {"Vary", "Accept-Encoding"}}}},
         .handled = {}});
  }
  cases.push_back(in_order("AnUnchangedResponseHasTheTagOfItsCoding", std::move(exchanges)));
  add({.name = "AClientThatAcceptsNoCodingGetsTheStrongTag",
       .request = {.target = "/pages/tagged"},
       .response = {.body = compression::words(10'000),
                    .fields = {.present = {{"ETag", "\"v1\""}}, .absent = {"Content-Encoding"}}},
       .handled = {}});
}

/// Cases of a proxy that asks its upstream for compressed responses.
void add_decompression_cases(std::vector<MessageCase>& cases) {
  DeploymentOptions decoding;
  decoding.proxy.client.decompression.emplace();
  std::vector<Exchange> decoded;
  std::vector<Exchange> kept;
  for (const std::string method : {"GET", "HEAD"}) {
    decoded.push_back({.request = {.method = method, .target = "/coded"},
                       .response = {.body = method == "GET" ? "plain" : "",
                                    .fields = {.present = {{"ETag", "W/\"v\""}},
                                               .absent = {"Content-Encoding", "Content-Length",
                                                          "Accept-Ranges", "Repr-Digest"}}},
                       .handled = {}});
  }
  for (const std::string accepted : {"gzip", "identity"}) {
    kept.push_back(
        {.request = {.target = "/coded", .message = {.fields = {{"Accept-Encoding", accepted}}}},
         .response = {.body = compression::compressed(compression::Coding::gzip, "plain"),
                      .fields = {.present = {{"Content-Encoding", "gzip"}, {"ETag", "\"v\""}}}},
         .handled = {}});
  }
  cases.push_back(in_order("ADecodedResponseHasNoFieldsOfItsCoding", std::move(decoded)));
  cases.back().options = decoding;
  cases.back().exclusions = {proxy_only};
  cases.push_back(in_order("ACodedResponseStaysForAClientThatAsksItself", std::move(kept)));
  cases.back().options = decoding;
}

/// Cases of requests whose bodies are encoded.
void add_request_coding_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const std::string content = compression::words(50'000);
  const std::string data = compression::compressed(compression::Coding::gzip, content);
  const Fields gzip{{"Content-Encoding", "gzip"}, {"Content-Digest", "sha-256=:AA==:"}};
  DeploymentOptions decoding;
  decoding.before_proxy = [](http::Router& routes) { routes.use(http::decompress_requests()); };
  for (const Length length : {Length::declared, Length::undeclared}) {
    const std::string of = length == Length::declared ? "OfAKnownLength" : "OfAnUnknownLength";
    const SentMessage message{.fields = gzip, .body = {data}, .length = length};
    SentMessage untouchable = message;
    untouchable.fields.emplace_back("Cache-Control", "no-transform");
    add({.name = "ACodedBodyReachesAHandlerThatDecodes" + of,
         .request = {.method = "POST", .target = "/decoded", .message = message},
         .response = {.body = content},
         .handled = ExpectedRequest{.body = content, .kind = BodyKind::unknown_length}});
    add({.name = "ADecodedBodyHasNoFieldsOfItsCoding" + of,
         .request = {.method = "POST", .target = "/echo", .message = message},
         .handled = ExpectedRequest{.body = content,
                                    .kind = BodyKind::unknown_length,
                                    .fields = {.absent = {"Content-Encoding", "Content-Digest"}}},
         .then = {{.request = {.method = "POST", .target = "/echo", .message = untouchable},
                   .handled = ExpectedRequest{.body = data, .fields = {.present = gzip}}}},
         .options = decoding,
         .exclusions = {proxy_only}});
  }
  // Without a body there is nothing to decode, and nothing that the field is wrong about.
  add({.name = "NoBodyIsNotDecoded",
       .request = {.target = "/echo", .message = {.fields = gzip}},
       .handled = ExpectedRequest{.body = "",
                                  .kind = BodyKind::none,
                                  .fields = {.present = {{"Content-Encoding", "gzip"}}}},
       .options = decoding});
}

}  // namespace

void add_validator_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add_condition_cases(cases);
  add({.name = "ACodedBodyKeepsTheFieldsOfItsCoding",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.fields = {{"Content-Encoding", "gzip"}}, .body = {"coded"}}},
       .handled = ExpectedRequest{.body = "coded",
                                  .kind = BodyKind::known_length,
                                  .fields = {.present = {{"Content-Encoding", "gzip"}}}}});
  if (!compression::is_available(compression::Coding::gzip)) return;  // the build lacks zlib
  add_compression_cases(cases);
  add_decompression_cases(cases);
  add_request_coding_cases(cases);
}

}  // namespace weir::tests::messages
