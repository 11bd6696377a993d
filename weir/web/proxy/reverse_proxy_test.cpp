// Tests of the reverse proxy against upstreams that follow scripts: what it passes on.
#include "weir/web/proxy/reverse_proxy.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_test {
namespace {

class ReverseProxyTest : public ProxyFixture {
 protected:
  /// Returns the head that the upstream gets for this request.
  std::string passed(std::string_view head, ReverseProxyOptions options = {}) {
    ask({}, std::string(head) + "Connection: close\r\n\r\n", std::move(options));
    return upstream_requests().empty() ? "" : upstream_requests().back();
  }
  /// Returns the response to a GET whose upstream sends this.
  sim::HttpResponse response(std::string answer, std::string_view method = "GET") {
    Step step;
    step.answer = std::move(answer);
    const std::string text =
        ask({{step}}, std::string(method) + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    last_text_ = text;
    const auto responses = sim::parse_http_responses(text, {method});
    EXPECT_EQ(responses.size(), 1U) << text;
    return responses.empty() ? sim::HttpResponse() : responses[0];
  }

  std::string last_text_;
};

TEST_F(ReverseProxyTest, RequestHasTheHeadersOfTheClientAndThoseOfTheProxy) {
  EXPECT_EQ(passed("GET /a%2Fb?x=%20&y HTTP/1.1\r\nHost: shop.test\r\nX-More: 1\r\nX-More: 2\r\n"),
            "GET /a%2Fb?x=%20&y HTTP/1.1\r\n"
            "Host: 127.0.0.1:81\r\n"
            "X-More: 1\r\n"
            "X-More: 2\r\n"
            "X-Forwarded-For: 127.0.0.1\r\n"
            "X-Forwarded-Proto: http\r\n"
            "X-Forwarded-Host: shop.test\r\n"
            "Via: 1.1 weir\r\n"
            "\r\n");
}

TEST_F(ReverseProxyTest, TooManyOptionsOfConnectionAreRefused) {
  std::string options = "Connection: close";
  for (int count = 0; count < 63; ++count) options += ", x-" + std::to_string(count);
  for (const bool too_many : {false, true}) {
    if (too_many) options += ", x-a";
    EXPECT_EQ(statuses({}, "GET / HTTP/1.1\r\nHost: a\r\n" + options + "\r\n\r\n"),
              too_many ? "400" : "200");
    EXPECT_EQ(upstream_requests().size(), too_many ? 0U : 1U);
    const auto found = response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + options + "\r\n\r\n");
    EXPECT_EQ(found.status, too_many ? 502 : 200);
  }
}

TEST_F(ReverseProxyTest, AppendKeepsTheHeadersOfATrustedProxy) {
  ReverseProxyOptions options;
  options.forwarded = ForwardedHeaders::append;
  options.rfc7239 = true;
  const std::string head = passed(
      "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\n"
      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=1.2.3.4\r\n",
      options);
  EXPECT_NE(head.find("X-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1\r\n"), head.npos) << head;
  EXPECT_NE(head.find("X-Forwarded-Proto: https\r\n"), head.npos) << head;
  EXPECT_EQ(head.find("X-Forwarded-Proto: http\r\n"), head.npos) << head;
  EXPECT_EQ(head.find("X-Forwarded-Host: a\r\n"), head.npos) << head;
  EXPECT_NE(head.find("Forwarded: for=1.2.3.4\r\n"), head.npos) << head;
  EXPECT_NE(head.find("Forwarded: for=127.0.0.1;host=\"a\";proto=http\r\n"), head.npos) << head;
}

TEST_F(ReverseProxyTest, NoneSendsNoHeaderAboutTheClient) {
  ReverseProxyOptions options;
  options.forwarded = ForwardedHeaders::none;
  options.via.clear();
  EXPECT_EQ(passed("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\n", options),
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n");
}

TEST_F(ReverseProxyTest, HostIsPreservedIfWanted) {
  ReverseProxyOptions options;
  options.preserve_host = true;
  const std::string head = passed("GET / HTTP/1.1\r\nHost: shop.test:8\r\n", options);
  EXPECT_NE(head.find("\r\nHost: shop.test:8\r\n"), head.npos) << head;
  EXPECT_EQ(head.find("127.0.0.1:81"), head.npos) << head;
}

TEST_F(ReverseProxyTest, PrefixIsStrippedAndThePathOfTheUpstreamAdded) {
  ReverseProxyOptions options;
  options.strip_prefix = "/api";
  upstreams_ = {"http://127.0.0.1:81/v1/"};
  EXPECT_TRUE(passed("GET /api/x?y HTTP/1.1\r\nHost: a\r\n", options).starts_with("GET /v1/x?y "));
  EXPECT_TRUE(passed("GET /api HTTP/1.1\r\nHost: a\r\n", options).starts_with("GET /v1/ "));
  EXPECT_TRUE(passed("GET /api? HTTP/1.1\r\nHost: a\r\n", options).starts_with("GET /v1/? "));
  const std::size_t count = upstream_requests().size();
  EXPECT_EQ(statuses({}, get("/apis"), options), "404");
  EXPECT_EQ(statuses({}, get("/other"), options), "404");
  EXPECT_EQ(statuses({}, get("/api/../secret"), options), "400");
  EXPECT_EQ(statuses({}, get("/api/%2e%2e/secret"), options), "400");
  EXPECT_EQ(upstream_requests().size(), 0U) << count;
}

TEST_F(ReverseProxyTest, TargetMayBeAsLongAsThoseOfTheServer) {
  limits_.head.request_line_max = 32 * 1024;
  const std::string target = "/?" + std::string(20'000, 'q');
  const std::string head = passed("GET " + target + " HTTP/1.1\r\nHost: a\r\n");
  EXPECT_TRUE(head.starts_with("GET " + target + " HTTP/1.1\r\n"));
}

TEST_F(ReverseProxyTest, ResponseHasItsHeadersAndBody) {
  const auto found = response(
      "HTTP/1.1 201 Fine\r\nContent-Length: 2\r\nContent-Type: text/x\r\nSet-Cookie: a=1\r\n"
      "Set-Cookie: b=2\r\nServer: other\r\nDate: never\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
      "Keep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\nVia: 1.0 inner\r\n\r\nok");
  EXPECT_EQ(found.status, 201);
  EXPECT_EQ(found.body, "ok");
  EXPECT_EQ(found.header("Content-Type"), "text/x");
  EXPECT_EQ(found.header("Server"), "other");
  EXPECT_NE(last_text_.find("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"), std::string::npos);
  EXPECT_NE(last_text_.find("Via: 1.0 inner\r\n"), std::string::npos) << last_text_;
  EXPECT_NE(last_text_.find("Via: 1.1 weir\r\n"), std::string::npos) << last_text_;
  for (const std::string_view gone : {"Hop", "Keep-Alive", "Proxy", "never"}) {
    EXPECT_EQ(last_text_.find(gone), std::string::npos) << gone;
  }
}

TEST_F(ReverseProxyTest, BodyOfUnknownLengthIsFramedAnew) {
  const auto chunked = response(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n"
      "X-Sum: 3\r\n\r\n");
  EXPECT_EQ(chunked.body, "abc");
  EXPECT_EQ(chunked.header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(chunked.header("Content-Length"), "");
  EXPECT_NE(last_text_.find("0\r\nX-Sum: 3\r\n\r\n"), std::string::npos) << "the trailers";
  Step step{.answer = "HTTP/1.1 200 OK\r\n\r\nuntil the end", .close = true};
  const std::string ended = ask({{step}}, get("/"));
  EXPECT_EQ(sim::parse_http_responses(ended)[0].body, "until the end");
}

TEST_F(ReverseProxyTest, ResponsesWithoutABodyKeepTheirHeaders) {
  const auto head =
      response("HTTP/1.1 200 OK\r\nContent-Length: 77\r\nETag: \"e\"\r\n\r\n", "HEAD");
  EXPECT_EQ(head.header("Content-Length"), "77");
  EXPECT_EQ(head.header("ETag"), "\"e\"");
  EXPECT_TRUE(last_text_.ends_with("\r\n\r\n"));
  const auto unchanged = response("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n");
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.header("ETag"), "\"e\"");
  EXPECT_EQ(unchanged.header("Content-Length"), "");
  const auto none = response("HTTP/1.1 204 No Content\r\nX-Any: 1\r\n\r\n");
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.header("X-Any"), "1");
}

TEST_F(ReverseProxyTest, ErrorOfAnUpstreamIsNotReplaced) {
  const auto empty = response("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(empty.status, 404);
  EXPECT_EQ(empty.body, "");
  EXPECT_EQ(empty.header("Content-Length"), "0");
  const auto page = response("HTTP/1.1 503 No\r\nContent-Length: 4\r\nRetry-After: 9\r\n\r\nbusy");
  EXPECT_EQ(page.status, 503);
  EXPECT_EQ(page.body, "busy");
  EXPECT_EQ(page.header("Retry-After"), "9");
}

TEST_F(ReverseProxyTest, InterimResponsesArePassedOn) {
  Step step;
  step.answer =
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
      "2\r\n\r\nok";
  const std::string answer = ask({{step}}, get("/"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n")) << answer;
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "103 200");
  EXPECT_TRUE(answer.ends_with("\r\n\r\nok")) << answer;
}

TEST_F(ReverseProxyTest, RequestsThatAreNotPassedOn) {
  EXPECT_EQ(statuses({}, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n"), "405");
  EXPECT_EQ(statuses({}, "TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "405");
  EXPECT_EQ(statuses({}, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "204");
  std::string circle = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  for (int hop = 0; hop < 8; ++hop) circle += "Via: 1.1 weir, 1.0 x\r\n";
  EXPECT_EQ(statuses({}, circle + "\r\n"), "508");
  EXPECT_EQ(upstream_requests().size(), 0U);
}

TEST_F(ReverseProxyTest, LastProxyAnswersItself) {
  constexpr std::string_view rest =
      " /a?b HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nCookie: secret\r\n"
      "Authorization: secret\r\nConnection: close\r\n\r\n";
  const ReverseProxyOptions tracing{.pass_trace = true};
  const std::string options = ask({}, "OPTIONS" + std::string(rest), tracing);
  EXPECT_TRUE(options.starts_with("HTTP/1.1 204 ")) << options;
  EXPECT_TRUE(options.contains("Allow: DELETE, GET")) << options;
  const std::string trace = ask({}, "TRACE" + std::string(rest), tracing);
  const auto responses = sim::parse_http_responses(trace, {"TRACE"});
  ASSERT_EQ(responses.size(), 1U) << trace;
  EXPECT_EQ(responses[0].status, 200);
  EXPECT_EQ(responses[0].header("Content-Type"), "message/http");
  EXPECT_EQ(responses[0].body,
            "TRACE /a?b HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(upstream_requests().size(), 0U);
}

TEST_F(ReverseProxyTest, TrailersOfResponsesObeyTheRulesOfHeaders) {
  response(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Named\r\n\r\n1\r\na\r\n0\r\n"
      "X-Named: no\r\nSet-Cookie: no\r\nProxy-Authenticate: no\r\nDate: no\r\nVia: no\r\n"
      "Location: no\r\nContent-Encoding: no\r\nProxy-Status: yes\r\nX-Sum: yes\r\n\r\n");
  EXPECT_TRUE(last_text_.ends_with("0\r\nProxy-Status: yes\r\nX-Sum: yes\r\n\r\n")) << last_text_;
}

TEST_F(ReverseProxyTest, ProxyStatusOfAResponsePasses) {
  const auto found = response(
      "HTTP/1.1 502 No\r\nContent-Length: 1\r\nProxy-Status: a; error=x\r\nProxy-Any: no\r\n\r\na");
  EXPECT_EQ(found.header("Proxy-Status"), "a; error=x");
  EXPECT_EQ(found.header("Proxy-Any"), "");
}

// RFC 9110 §7.7: a proxy does not transform the content of such a message.
TEST_F(ReverseProxyTest, NoTransformKeepsTheCoding) {
  const std::string data = compression::compressed(compression::Coding::gzip, "plain");
  const std::string coded =
      "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(data.size()) +
      "\r\nETag: \"v\"\r\n";
  const std::string_view directive = "Cache-Control: max-age=5 , No-Transform\r\n";
  ReverseProxyOptions options;
  options.client.decompression = compression::DecompressLimits{};
  for (const bool in_request : {false, true}) {
    Step step;
    step.answer = "HTTP/1.1 200 OK\r\n" + coded;
    if (!in_request) step.answer.append(directive);
    step.answer.append("\r\n").append(data);
    std::string head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    if (in_request) head.append(directive);
    const std::string text = ask({{step}}, head.append("\r\n"), options);
    const auto responses = sim::parse_http_responses(text);
    ASSERT_EQ(responses.size(), 1U) << text;
    EXPECT_EQ(responses[0].header("Content-Encoding"), "gzip");
    EXPECT_EQ(responses[0].header("ETag"), "\"v\"");
    EXPECT_TRUE(responses[0].body == data);
    ASSERT_EQ(upstream_requests().size(), 1U);
    EXPECT_EQ(upstream_requests()[0].contains("Accept-Encoding"), !in_request);
  }
  Step unchanged;
  unchanged.answer = "HTTP/1.1 304 Same\r\nETag: \"v\"\r\n" + std::string(directive) + "\r\n";
  const std::string text = ask({{unchanged}},
                               "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: W/\"v\"\r\n"
                               "Connection: close\r\n\r\n",
                               options);
  EXPECT_TRUE(text.contains("ETag: \"v\"\r\n")) << text;
}

TEST(ReverseProxyOptionsTest, InvalidOptionsAreRefused) {
  ReverseProxyOptions prefix;
  prefix.strip_prefix = "api";
  ReverseProxyOptions via;
  via.via = "a b";
  ReverseProxyOptions attempts;
  attempts.attempts_max = 0;
  for (const ReverseProxyOptions& bad : {prefix, via, attempts}) {
    EXPECT_THROW(reverse_proxy("http://a.test", bad), std::invalid_argument);
  }
  EXPECT_THROW(reverse_proxy(std::vector<std::string>()), std::invalid_argument);
  EXPECT_THROW(reverse_proxy("a.test:80"), std::invalid_argument);
  EXPECT_THROW(reverse_proxy("http://a.test/?q"), std::invalid_argument);
}

}  // namespace
}  // namespace weir::http::reverse_proxy_test
