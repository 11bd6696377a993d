// Cases about the fields of heads and of trailers that pass a proxy.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {
namespace {

bool is_plain(const Carrier& carrier) {
  return carrier.layer == Layer::plain;
}
bool is_over_tls(const Carrier& carrier) {
  return carrier.layer == Layer::tls;
}
bool is_http2(const Carrier& carrier) {
  return carrier.protocol == Protocol::http_2;
}
/// Returns true if a connection of HTTP/1 carries the response away from the handler.
bool has_http1_at_the_handler(const Carrier& carrier) {
  if (!is_direct(carrier)) return carrier.way == Way::proxied_http_1_1;
  return carrier.protocol == Protocol::http_1_0 || carrier.protocol == Protocol::http_1_1;
}
bool has_another_at_the_handler(const Carrier& carrier) {
  return !has_http1_at_the_handler(carrier);
}

/// Cases of the fields by which a proxy describes the client.
void add_client_address_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const SentRequest inventive{.target = "/echo",
                              .message = {.fields = {{"X-Forwarded-For", "6.6.6.6"},
                                                     {"X-Forwarded-Host", "evil.test"},
                                                     {"X-Forwarded-Proto", "gopher"},
                                                     {"X-Forwarded-Port", "1"},
                                                     {"X-Real-IP", "6.6.6.6"},
                                                     {"Forwarded", "for=6.6.6.6"},
                                                     {"X_Forwarded_For", "6.6.6.6"},
                                                     {"X.Forwarded.For", "6.6.6.6"},
                                                     {"X~Real~IP", "6.6.6.6"}}}};
  const auto expected = [](std::string scheme) {
    return ExpectedRequest{
        .fields = {.present = {{"X-Forwarded-For", "127.0.0.1"},
                               {"X-Forwarded-Host", "weir.test"},
                               {"X-Forwarded-Proto", std::move(scheme)}},
                   .absent = {"X-Forwarded-Port", "X-Real-IP", "Forwarded", "X_Forwarded_For",
                              "X.Forwarded.For", "X~Real~IP"}}};
  };
  add({.name = "AClientCannotInventItsAddress",
       .request = inventive,
       .handled = expected("http"),
       .exclusions = {proxy_only, {&is_over_tls, "the scheme is another one over TLS"}}});
  add({.name = "AClientCannotInventItsAddressOverTls",
       .request = inventive,
       .handled = expected("https"),
       .exclusions = {proxy_only, {&is_plain, "the scheme is another one without TLS"}}});
}

/// Cases of the fields of one connection, and of the count of connections.
void add_hop_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  ExpectedFields passed{.present = {{"X-Kept", "4"}}};
  Fields sent{{"Connection", "keep-alive, X-Hop , x-other"},
              {"X-Hop", "1"},
              {"X-HOP", "2"},
              {"X-Other", "3"},
              {"Keep-Alive", "5"},
              {"Proxy-Connection", "close"},
              {"Proxy-Authorization", "Basic eA=="},
              {"Proxy", "http://evil.test"},
              {"TE", "gzip"},
              {"Trailer", "X-Sum"},
              {"Upgrade", "h2c"}};
  for (const auto& [name, value] : sent) passed.absent.push_back(name);
  sent.emplace_back("X-Kept", "4");
  add({.name = "FieldsOfAConnectionAreNotPassedOn",
       .request = {.target = "/echo", .message = {.fields = sent}},
       .handled = ExpectedRequest{.fields = passed},
       .exclusions = {proxy_only, {&is_http2, "HTTP/2 has no Connection"}}});
  const std::string methods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY";
  const DeploymentOptions tracing{.proxy = {.pass_trace = true}};
  const auto ask = [](std::string method, std::string left) {
    return SentRequest{.method = std::move(method),
                       .target = "/echo",
                       .message = {.fields = {{"Max-Forwards", std::move(left)}}}};
  };
  const auto handled = [](std::string left) {
    return ExpectedRequest{.fields = {.present = {{"Max-Forwards", std::move(left)}}}};
  };
  add({.name = "MaxForwardsEndsAtTheProxy",
       .request = ask("OPTIONS", "0"),
       .response = {.status = 204, .fields = {.present = {{"Allow", methods}}}},
       .handled = {},
       .exclusions = {proxy_only}});
  for (const std::string method : {"OPTIONS", "TRACE"}) {
    add({.name = "MaxForwardsCountsDownFor" + method,
         .request = ask(method, "5"),
         .handled = handled("4"),
         .then = {{.request = ask(method, "1"), .handled = handled("0")},
                  {.request = ask(method, "x"), .response = {.status = 400}, .handled = {}}},
         .options = tracing,
         .exclusions = {proxy_only}});
  }
  add({.name = "MaxForwardsOfAnotherMethodIsPassedOn",
       .request = ask("GET", "0"),
       .handled = handled("0")});
  add({.name = "TraceShowsNothing",
       .request = {.method = "TRACE", .target = "/echo"},
       .response = {.status = 405, .fields = {.present = {{"Allow", methods}}}},
       .handled = {},
       .exclusions = {proxy_only}});
  add({.name = "TraceIsPassedOnIfWanted",
       .request = {.method = "TRACE", .target = "/echo"},
       .options = tracing,
       .exclusions = {proxy_only}});
}

/// Cases of trailers, for which the rules of heads hold.
void add_trailer_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  ExpectedFields passed{.present = {{"X-Sum", "7"}}};
  Fields sent{{"X-Forwarded-For", "1.2.3.4"},
              {"X-Forwarded-Host", "evil.test"},
              {"X-Forwarded-Proto", "https"},
              {"X-Real-IP", "1.2.3.4"},
              {"Forwarded", "for=1.2.3.4"},
              {"Via", "1.1 evil"},
              {"Proxy", "http://evil.test"},
              {"Authorization", "secret"},
              {"Proxy-Authorization", "secret"},
              {"Cookie", "secret"},
              {"Content-Type", "text/evil"},
              {"Max-Forwards", "9"},
              {"If-Match", "evil"},
              {"X_Forwarded_For", "1.2.3.4"},
              {"X.Forwarded.For", "1.2.3.4"},
              {"Content_Type", "text/evil"},
              {"Origin", "http://evil.test"},
              {"Early-Data", "1"},
              {"Sec-Fetch-Site", "same-origin"},
              {"Sec.Fetch.Site", "same-origin"},
              {"X-Api-Key", "secret"},
              {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
              {"Access-Control-Allow-Origin", "*"},
              {"strict-transport-security", "max-age=0"}};
  for (const auto& [name, value] : sent) passed.absent.push_back(name);
  sent.emplace_back("X-Sum", "7");
  const auto post = [](Fields fields, Fields trailers) {
    return SentRequest{.method = "POST",
                       .target = "/echo",
                       .message = {.fields = std::move(fields),
                                   .body = {"body"},
                                   .length = Length::undeclared,
                                   .trailers = std::move(trailers)}};
  };
  add({.name = "TrailersObeyTheRulesOfHeads",
       .request = post({}, sent),
       .handled = ExpectedRequest{.body = "body", .trailers = passed},
       .exclusions = {proxy_only}});
  add({.name = "ATrailerThatConnectionNamesIsNotPassedOn",
       .request = post({{"Connection", "X-Named"}}, {{"X-Named", "secret"}, {"X-Sum", "7"}}),
       .handled = ExpectedRequest{.body = "body",
                                  .trailers = {.present = {{"X-Sum", "7"}}, .absent = {"X-Named"}}},
       .exclusions = {proxy_only, {&is_http2, "HTTP/2 has no Connection"}}});
  add({.name = "ATrailerBehindAKnownLength",
       .request = {.target = "/sized-trailer"},
       .response = {.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}},
       .handled = {},
       .exclusions = {{&has_http1_at_the_handler, "HTTP/1 has no trailers behind a length"}}});
  add({.name = "NoTrailerBehindAKnownLength",
       .request = {.target = "/sized-trailer"},
       .response = {.body = "body", .trailers = {.absent = {"X-Sum"}}},
       .handled = {},
       .exclusions = {
           {&has_another_at_the_handler, "only HTTP/1 has no trailers behind a length"}}});
}

/// Cases of heads with many fields.
void add_many_field_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const auto fields = [](int count) {
    Fields all;
    for (int each = 0; each < count; ++each) {
      all.emplace_back("X-" + std::to_string(each), std::to_string(each));
    }
    return all;
  };
  constexpr int headers_max = 300;
  DeploymentOptions raised;
  raised.limits.head.headers_max = headers_max;
  raised.proxy.client.limits.response.head.headers_max = headers_max;
  add({.name = "ManyFieldsPassIfTheLimitsAreRaised",
       .request = {.target = "/echo", .message = {.fields = fields(280)}},
       .response = {.fields = {.present = fields(280)}},
       .handled = ExpectedRequest{.fields = {.present = fields(280)}},
       .options = raised});
  add({.name = "MoreFieldsThanARaisedLimitAreRejected",
       .request = {.target = "/echo", .message = {.fields = fields(headers_max + 1)}},
       .response = {.status = 431},
       .handled = {},
       .options = raised});
  add({.name = "MoreFieldsThanTheLimitAreRejected",
       .request = {.target = "/echo", .message = {.fields = fields(101)}},
       .response = {.status = 431},
       .handled = {}});
  DeploymentOptions narrow = raised;
  narrow.proxy.client.limits.response = {};
  add({.name = "MoreFieldsThanTheLimitOfTheProxyAreBadGateway",
       .request = {.target = "/echo", .message = {.fields = fields(200)}},
       .response = {.status = 502},
       .options = narrow,
       .logged = {"weir: GET /echo: handler failed: bad_response"},
       .exclusions = {proxy_only}});
}

/// The request line of HTTP/1.1 has exactly HeadLimits::request_line_max bytes.
void add_long_target_case(std::vector<MessageCase>& cases) {
  const std::size_t longest =
      http::HeadLimits().request_line_max - std::string_view("GET /echo? HTTP/1.1").size();
  cases.push_back({.name = "ATargetMayBeAsLongAsTheServerAllows",
                   .request = {.target = "/echo?" + std::string(longest, 'q')}});
}

/// Cases of fields by which browsers and tracers describe a request.
void add_origin_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  const auto ask = [](Fields fields) {
    return SentRequest{.target = "/inside/page", .message = {.fields = std::move(fields)}};
  };
  std::vector<Exchange> exchanges;
  for (const std::string site : {"same-origin", "none"}) {
    exchanges.push_back({.request = ask({{"Sec-Fetch-Site", site}}),
                         .response = {.body = "inside"},
                         .handled = {}});
  }
  const auto refuse = [&](Fields fields) {
    exchanges.push_back(
        {.request = ask(std::move(fields)), .response = {.status = 403}, .handled = {}});
  };
  refuse({{"Sec-Fetch-Site", "same-site"}});
  refuse({{"Sec-Fetch-Site", "cross-site"}});
  refuse({{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-origin"}});
  refuse({{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site"}});
  cases.push_back(in_order("APageOfAnotherSiteMayNotAsk", std::move(exchanges)));
  const Fields trace{{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
                     {"tracestate", "a=1"}};
  add({.name = "ATraceIsPassedOn",
       .request = {.target = "/echo", .message = {.fields = trace}},
       .handled = ExpectedRequest{.fields = {.present = trace}}});
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
  add_trailer_cases(cases);
  add({.name = "AGrpcClientMayAskForTrailers",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.fields = {{"TE", "trailers"}}}},
       .handled = ExpectedRequest{.fields = {.present = {{"TE", "trailers"}}}}});
  add({.name = "TheWishForTrailersIsSentAnew",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.fields = {{"TE", "gzip, trailers"}}}},
       .handled = ExpectedRequest{.fields = {.present = {{"TE", "trailers"}}}},
       .then = {{.request = {.method = "POST", .target = "/echo"},
                 .handled = ExpectedRequest{.fields = {.absent = {"TE"}}}}},
       .exclusions = {proxy_only, {&is_http2, "HTTP/2 has no other TE than trailers"}}});
  add({.name = "ARedirectIsPassedOn",
       .request = {.target = "/moved"},
       .response = {.status = 302, .fields = {.present = {{"Location", "/elsewhere"}}}},
       .handled = {}});
  add_client_address_cases(cases);
  add_hop_cases(cases);
  add_many_field_cases(cases);
  add_long_target_case(cases);
  add_origin_cases(cases);
}

}  // namespace weir::tests::messages
