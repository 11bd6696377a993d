// Tests of the bodies that a reverse proxy passes on, and of clients that leave.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/client_fixture.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_bodies_test {
namespace {

/// A proxy whose upstream is another server of Weir, at port 81.
class ProxiedServerTest : public ProxyFixture {
 protected:
  ProxiedServerTest() {
    inner_.post("/echo", [](Request& request) -> Task<Response> {
      auto body = co_await request.body();
      if (!body) co_return Response(to_status(body.error()));
      co_return text(std::move(*body));
    });
    inner_.get("/flood", [this] { return stream("text/plain", &flood, this); });
    inner_.get("/wait", [this](Request&) -> Task<Response> {
      waiting_ = true;
      const Result<> slept = co_await sleep(1h);
      if (!slept) cancelled_ = true;
      co_return text("late");
    });
    inner_.post("/refuse", [] { return Response(Status::forbidden); });
  }

  static Task<Result<>> flood(BodySink& sink, ProxiedServerTest* test) {
    const std::string piece(16 * 1024, 'x');
    for (;;) {
      const Result<> sent = co_await sink.write(piece);
      if (!sent) {
        test->cancelled_ = true;
        co_return sent;
      }
      test->flooded_ += piece.size();
    }
  }

  void with_servers(ReverseProxyOptions options, const Body& use,
                    PlainHttp2 inner_protocol = PlainHttp2::off) {
    with_inner_server(inner_, std::move(options), use, inner_protocol);
  }
  static ClientRequest post(std::string_view path, http::Body body) {
    ClientRequest request(Method::post, "http://127.0.0.1" + std::string(path));
    request.set_body("text/plain", std::move(body));
    return request;
  }
  /// Sends 100 pieces of 1,000 bytes.
  static Task<Result<>> write_pieces(BodySink& sink) {
    for (char piece = 0; piece < 100; ++piece) {
      const Result<> sent = co_await sink.write(std::string(1000, piece));
      if (!sent) co_return sent;
    }
    co_return {};
  }
  static std::string pieces() {
    std::string all;
    for (char piece = 0; piece < 100; ++piece) all += std::string(1000, piece);
    return all;
  }

  Router inner_;
  std::size_t flooded_ = 0;
  bool waiting_ = false;
  bool cancelled_ = false;
};

TEST_F(ProxiedServerTest, HandlerAnswers100Continue) {
  std::string early;
  std::string rest;
  with_servers({}, [&](Client&) -> Task<> {
    constexpr std::string_view head =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
        "Connection: close\r\n\r\n";
    auto stream = co_await tcp::connect(Endpoint::loopback(80));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_TRUE(co_await stream->write(head));
    auto piece = co_await stream->read();
    if (piece) early = piece->text();
    EXPECT_TRUE(co_await stream->write("ok"));
    for (piece = co_await stream->read(); piece; piece = co_await stream->read()) {
      rest += piece->text();
    }
  });
  EXPECT_EQ(early, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(sim::parse_http_responses(rest)[0].body, "ok");
}

TEST_F(ProxiedServerTest, EarlyErrorEndsTheUpload) {
  with_servers({}, [](Client& client) -> Task<> {
    http::Body endless{StreamFunction([](BodySink& sink) -> Task<Result<>> {
      for (;;) {
        const Result<> sent = co_await sink.write(std::string(10'000, 'x'));
        if (!sent) co_return sent;
      }
    })};
    auto response = co_await client.send(post("/refuse", std::move(endless)));
    EXPECT_TRUE(response && response->status() == Status::forbidden);
  });
}

TEST_F(ProxiedServerTest, EarlyErrorReachesAClientThatSendsNoMore) {
  constexpr std::string_view head =
      "POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
  Step early;
  early.answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nlong";
  for (const bool closes : {false, true}) {
    early.close = closes;
    upstreams_ = {"http://127.0.0.1:81"};
    with_proxy({{early}}, {}, [&](Client&) -> Task<> {
      MemoryPeer& peer = connect();
      EXPECT_GT(peer.send(std::string(head) + std::string(5'000, 'x')), 0U);
      std::ignore = co_await sleep(10ms);
      const auto responses = sim::parse_http_responses(peer.received());
      EXPECT_EQ(sim::statuses_of(responses), "413");
      EXPECT_EQ(responses.at(0).body, "long");
    });
  }
}

// A response that is complete needs no more of the request (RFC 9113 §8.1).
TEST_F(ProxiedServerTest, EarlySuccessNeedsNoMoreOfTheRequest) {
  Step early;
  early.pause = 1s;  // it reads nothing more for a second
  upstreams_ = {"http://127.0.0.1:81"};
  with_proxy({{early}}, {}, [&](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"), 0U);
    std::ignore = co_await sleep(100ms);
    const auto responses = sim::parse_http_responses(peer.received());
    EXPECT_EQ(sim::statuses_of(responses), "200");
    EXPECT_EQ(responses.at(0).header("Connection"), "close") << "the rest may never come";
    EXPECT_EQ(peer.send("world"), 5U);
    std::ignore = co_await sleep(100ms);
    EXPECT_FALSE(peer.was_reset()) << "the answer would be lost";
  });
}

// Neither the client nor the upstream is to blame for an upload that nobody reads.
TEST_F(ProxiedServerTest, EarlySuccessEndsALongUpload) {
  inner_.post("/ignore", [] { return text("enough"); });
  plain_http2_ = PlainHttp2::prior_knowledge;
  for (const auto protocol : {PlainHttp2::off, PlainHttp2::only}) {
    ReverseProxyOptions options;
    options.client.plain_http2 = protocol == PlainHttp2::only;
    with_servers(
        options,
        [](Client& http1) -> Task<> {
          ClientOptions prior_knowledge;
          prior_knowledge.plain_http2 = true;
          Client http2(std::move(prior_knowledge));
          for (Client* const client : {&http1, &http2}) {
            http::Body endless{StreamFunction([](BodySink& sink) -> Task<Result<>> {
              for (;;) {
                const Result<> sent = co_await sink.write(std::string(10'000, 'x'));
                if (!sent) co_return sent;
              }
            })};
            const Instant begin = Loop::current()->now();
            auto response = co_await client->send(post("/ignore", std::move(endless)));
            EXPECT_TRUE(response && response->status() == Status::ok);
            EXPECT_LT(Loop::current()->now() - begin, 1s);
          }
        },
        protocol);
  }
}

TEST_F(ProxiedServerTest, UpstreamThatLeavesWhileTheClientIsSilentIsBadGateway) {
  Step lost;
  lost.answer.clear();
  lost.close = true;
  upstreams_ = {"http://127.0.0.1:81"};
  with_proxy({{lost}}, {}, [&](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"), 0U);
    std::ignore = co_await sleep(100ms);
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "502");
  });
}

TEST_F(ProxiedServerTest, TooLongBodyIsRefusedByTheProxy) {
  body_max_ = 50'000;
  with_servers({}, [](Client& client) -> Task<> {
    auto known = co_await client.send(post("/echo", http::Body(pieces())));
    EXPECT_TRUE(known && known->status() == Status::content_too_large);
    http::Body chunked{StreamFunction(write_pieces)};
    auto unknown = co_await client.send(post("/echo", std::move(chunked)));
    EXPECT_TRUE(unknown && unknown->status() == Status::content_too_large);
  });
}

TEST_F(ProxiedServerTest, SlowClientSlowsTheUpstreamDown) {
  with_servers({}, [this](Client& client) -> Task<> {
    auto response = co_await client.get("http://127.0.0.1/flood");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto piece = co_await response->read();
    EXPECT_TRUE(piece && !piece->empty());
    std::ignore = co_await sleep(1s);
    const std::size_t filled = flooded_;
    EXPECT_LT(filled, 1024U * 1024U);
    std::ignore = co_await sleep(5s);
    EXPECT_EQ(flooded_, filled) << "it does not grow";
    for (int count = 0; count < 100; ++count) std::ignore = co_await response->read();
    std::ignore = co_await sleep(1s);
    EXPECT_GT(flooded_, filled);
    EXPECT_FALSE(cancelled_);
  });
  EXPECT_TRUE(cancelled_) << "the client has left";
}

TEST_F(ProxiedServerTest, DepartureOfTheClientClosesTheConnectionToTheUpstream) {
  with_servers({}, [this](Client&) -> Task<> {
    const std::size_t before = platform_.open_descriptors();
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"), 0U);
    while (!waiting_) std::ignore = co_await sleep(1ms);
    EXPECT_EQ(platform_.open_descriptors(), before + 3) << "both servers and the client";
    peer.reset();
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(platform_.open_descriptors(), before + 1) << "only the upstream, which waits";
  });
}

}  // namespace
}  // namespace weir::http::reverse_proxy_bodies_test
