#include "tools/weir/url.hpp"

#include <gtest/gtest.h>

#include "weir/net/listen/listener.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::bench {
namespace {

TEST(Target, TakesUrlsApart) {
  const auto full = parse_target("http://localhost:8080/a/b?c=d");
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->authority, "localhost:8080");
  EXPECT_EQ(full->host, "localhost");
  EXPECT_EQ(full->port, 8080);
  EXPECT_EQ(full->resource, "/a/b?c=d");

  const auto bare = parse_target("HTTP://10.0.0.1");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->resource, "/");

  const auto literal = parse_target("http://[::1]:81/?");
  ASSERT_TRUE(literal.has_value());
  EXPECT_EQ(literal->host, "::1");
  EXPECT_EQ(literal->authority, "[::1]:81");
  EXPECT_EQ(literal->resource, "/?");
}

TEST(Target, RefusesWhatIsNoHttpUrl) {
  for (const char* url : {"", "localhost:8080", "http://", "http://a b/", "http://u@host/",
                          "http://host:99999/", "http://host/\r\nX: y", "://host/", "/path"}) {
    EXPECT_EQ(parse_target(url).error(), Errc::bad_input) << url;
  }
  EXPECT_EQ(parse_target("https://localhost/").error(), Errc::unsupported);
}

TEST(Target, ResolvesLiteralsAndLocalhost) {
  const auto address = [](const char* url) {
    return resolve(*parse_target(url))->at(0).to_string();
  };
  EXPECT_EQ(address("http://127.0.0.1:8080/"), "127.0.0.1:8080");
  EXPECT_EQ(address("http://[::1]:8080/"), "[::1]:8080");
  const auto localhost = resolve(*parse_target("http://LocalHost:7/"));
  ASSERT_EQ(localhost->size(), 2U) << "whatever this machine's hosts file says";
  EXPECT_EQ(localhost->at(0).to_string(), "[::1]:7");
  EXPECT_EQ(localhost->at(1).to_string(), "127.0.0.1:7");
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
  EXPECT_EQ(run(reached(Endpoint::loopback(9))).port(), 1) << "none does, so the first";
}

TEST(Target, MakesRequests) {
  const Target target = *parse_target("http://localhost:8080/a");
  EXPECT_EQ(make_request(target, {}), "GET /a HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");

  RequestOptions post;
  post.method = "POST";
  post.fields = {"Content-Type: text/plain"};
  post.body = "hello";
  post.close = true;
  EXPECT_EQ(make_request(target, post),
            "POST /a HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: text/plain\r\n"
            "Connection: close\r\nContent-Length: 5\r\n\r\nhello");

  RequestOptions own_host;
  own_host.fields = {"host: example.test"};
  EXPECT_EQ(make_request(target, own_host), "GET /a HTTP/1.1\r\nhost: example.test\r\n\r\n");
}

TEST(Target, GivesALengthOnceAndTheRightOne) {
  const Target target = *parse_target("http://localhost:8080/a");
  RequestOptions options;
  options.body = "hello";
  options.fields = {"content-length: 5"};
  EXPECT_EQ(make_request(target, options),
            "GET /a HTTP/1.1\r\nHost: localhost:8080\r\ncontent-length: 5\r\n\r\nhello");
  options.fields = {"Content-Length: 3"};
  EXPECT_EQ(make_request(target, options).error(), Errc::bad_input);
  options.fields = {"Content-Length: 5", "Content-Length: 5"};
  EXPECT_EQ(make_request(target, options).error(), Errc::bad_input);
}

TEST(Target, RefusesRequestsThatWouldBeTwo) {
  const Target target = *parse_target("http://localhost:8080/a");
  RequestOptions method;
  method.method = "GET /x";
  EXPECT_EQ(make_request(target, method).error(), Errc::bad_input);
  for (const char* field : {"no colon", "A: b\r\nC: d", "sp ace: x", ": x"}) {
    RequestOptions options;
    options.fields = {field};
    EXPECT_EQ(make_request(target, options).error(), Errc::bad_input) << field;
  }
}

}  // namespace
}  // namespace weir::bench
