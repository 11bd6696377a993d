// Tests of URLs and requests.
#include "tools/weir/url.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/net/listen/listener.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::bench::url_test {
namespace {

TEST(Url, ParsesUrls) {
  const auto full = parse_url("http://localhost:8080/a/b?c=d");
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->authority, "localhost:8080");
  EXPECT_EQ(full->host, "localhost");
  EXPECT_EQ(full->port, 8080);
  EXPECT_EQ(full->path_and_query, "/a/b?c=d");

  const auto bare = parse_url("HTTP://10.0.0.1");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->path_and_query, "/");

  const auto literal = parse_url("http://[::1]:81/?");
  ASSERT_TRUE(literal.has_value());
  EXPECT_EQ(literal->host, "::1");
  EXPECT_EQ(literal->authority, "[::1]:81");
  EXPECT_EQ(literal->path_and_query, "/?");
}

TEST(Url, RejectsOtherThanHttpUrls) {
  for (const char* url : {"", "localhost:8080", "http://", "http://a b/", "http://u@host/",
                          "http://host:99999/", "http://host/\r\nX: y", "://host/", "/path"}) {
    EXPECT_EQ(parse_url(url).error(), Errc::bad_input) << url;
  }
}

TEST(Url, MayBeOfHttps) {
  EXPECT_FALSE(parse_url("http://localhost/")->secure);
  const auto secure = parse_url("HTTPS://localhost/a");
  ASSERT_TRUE(secure.has_value());
  EXPECT_TRUE(secure->secure);
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(secure->authority, "localhost");
  EXPECT_EQ(secure->path_and_query, "/a");
  EXPECT_EQ(parse_url("https://localhost:8443/")->port, 8443);
}

TEST(Url, ResolvesLiteralsAndLocalhost) {
  const auto address = [](const char* url) { return resolve(*parse_url(url))->at(0).to_string(); };
  EXPECT_EQ(address("http://127.0.0.1:8080/"), "127.0.0.1:8080");
  EXPECT_EQ(address("http://[::1]:8080/"), "[::1]:8080");
  const auto localhost = resolve(*parse_url("http://LocalHost:7/"));
  ASSERT_EQ(localhost->size(), 2U) << "for any hosts file";
  EXPECT_EQ(localhost->at(0).to_string(), "[::1]:7");
  EXPECT_EQ(localhost->at(1).to_string(), "127.0.0.1:7");
  EXPECT_EQ(*resolve(*parse_url("http://LocalHost.:7/")), *localhost);
}

class ReachableTarget : public LoopTest {};

TEST_F(ReachableTarget, IsTheFirstAddressThatAccepts) {
  const std::vector<Endpoint> all{Endpoint::loopback(1), Endpoint::loopback(2),
                                  Endpoint::loopback(3)};
  const auto reached = [&](Endpoint listening) -> Task<Endpoint> {
    const auto listener = co_await tcp::listen(listening);
    EXPECT_TRUE(listener);
    co_return co_await first_reachable(all);
  };
  EXPECT_EQ(run(reached(all[2])).port(), 3);
  EXPECT_EQ(run(reached(all[1])).port(), 2);
  EXPECT_EQ(run(reached(Endpoint::loopback(9))).port(), 1) << "none accepts, so it is the first";
}

TEST_F(ReachableTarget, AnswersWithinTwoSeconds) {
  const std::vector<Endpoint> all{Endpoint::loopback(1), Endpoint::loopback(2)};
  const auto reached = [&]() -> Task<Endpoint> {
    const ListenOptions small{.backlog = 0};
    const auto full = co_await tcp::listen(all[0], small);
    const auto waiting = co_await tcp::connect(all[0]);
    const auto listener = co_await tcp::listen(all[1]);
    EXPECT_TRUE(full && waiting && listener);
    co_return co_await first_reachable(all);
  };
  EXPECT_EQ(run(reached()).port(), 2);
  EXPECT_EQ(elapsed(), 2s);
}

TEST(Url, MakesRequests) {
  const Url target = *parse_url("http://localhost:8080/a");
  EXPECT_EQ(make_request(target, {}), "GET /a HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");

  RequestOptions post;
  post.method = "POST";
  post.headers = {"Content-Type: text/plain"};
  post.body = "hello";
  post.close = true;
  EXPECT_EQ(make_request(target, post),
            "POST /a HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: text/plain\r\n"
            "Connection: close\r\nContent-Length: 5\r\n\r\nhello");

  RequestOptions own_host;
  own_host.headers = {"host: example.test"};
  EXPECT_EQ(make_request(target, own_host), "GET /a HTTP/1.1\r\nhost: example.test\r\n\r\n");
}

TEST(Url, SendsOneCorrectContentLength) {
  const Url target = *parse_url("http://localhost:8080/a");
  RequestOptions options;
  options.body = "hello";
  options.headers = {"content-length: 5"};
  EXPECT_EQ(make_request(target, options),
            "GET /a HTTP/1.1\r\nHost: localhost:8080\r\ncontent-length: 5\r\n\r\nhello");
  options.headers = {"Content-Length: 3"};
  EXPECT_EQ(make_request(target, options).error(), Errc::bad_input);
  options.headers = {"Content-Length: 5", "Content-Length: 5"};
  EXPECT_EQ(make_request(target, options).error(), Errc::bad_input);
}

TEST(Url, RejectsHeadersThatChangeTheRequest) {
  const Url target = *parse_url("http://localhost:8080/a");
  RequestOptions method;
  method.method = "GET /x";
  EXPECT_EQ(make_request(target, method).error(), Errc::bad_input);
  for (const char* header : {"no colon", "A: b\r\nC: d", "A:\nC: d", "sp ace: x", ": x"}) {
    RequestOptions options;
    options.headers = {header};
    EXPECT_EQ(make_request(target, options).error(), Errc::bad_input) << header;
  }
}

TEST(Url, SendsALengthIfTheMethodRequiresOne) {
  const Url target = *parse_url("http://localhost/a");
  const auto made = [&](const std::string& method, const std::string& body) {
    RequestOptions options;
    options.method = method;
    options.body = body;
    return make_request(target, options).value();
  };
  const std::string host = " /a HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(made("POST", ""), "POST" + host + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(made("PUT", ""), "PUT" + host + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(made("QUERY", ""), "QUERY" + host + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(made("DELETE", ""), "DELETE" + host + "\r\n");
  EXPECT_EQ(made("GET", "x"), "GET" + host + "Content-Length: 1\r\n\r\nx");
}

TEST(Url, KeepsHeadersInTheirOrder) {
  RequestOptions options;
  options.headers = {"A:b", "C:\td ", "Content-Length: 0 "};
  EXPECT_EQ(make_request(*parse_url("http://localhost/"), options),
            "GET / HTTP/1.1\r\nHost: localhost\r\nA:b\r\nC:\td \r\nContent-Length: 0 \r\n\r\n");
  options.headers = {"Content-Length: 0", "Content-Length: 0"};
  EXPECT_EQ(make_request(*parse_url("http://localhost/"), options).error(), Errc::bad_input);
  options.headers = {""};
  EXPECT_EQ(make_request(*parse_url("http://localhost/"), options).error(), Errc::bad_input);
}

TEST(Url, HasAPathEvenIfOnlyAQueryIsGiven) {
  EXPECT_EQ(parse_url("http://localhost?a=b")->path_and_query, "/?a=b");
  EXPECT_EQ(parse_url("http://localhost:80/a")->authority, "localhost:80");
  EXPECT_EQ(parse_url("ftp://localhost/").error(), Errc::unsupported);
  EXPECT_EQ(parse_url("httpx://localhost/").error(), Errc::unsupported);
}

TEST(Url, ReportsANameWithoutAnAddress) {
  Url url;
  url.host = "999.999.999.999:";  // neither a name nor an address
  EXPECT_EQ(resolve(url).error(), Errc::not_found);
}

}  // namespace
}  // namespace weir::bench::url_test
