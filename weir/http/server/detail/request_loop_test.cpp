// Tests handlers and streams on a connection, also when the peer leaves.
#include "weir/http/server/detail/request_loop.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string get_of(std::string_view path, int minor = 1) {
  return "GET " + std::string(path) + " HTTP/1." + std::to_string(minor) + "\r\nHost: a\r\n\r\n";
}

class RequestLoopTest : public HttpTest {
 protected:
  RequestLoopTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.get("/waits", [this](Request&) { return waits(*this); });
    routes_.get("/tree", [this](Request&, Scope& scope) { return tree(scope, *this); });
    routes_.get("/throws", [](Request&) -> Task<Response> {
      co_await yield();
      throw std::runtime_error("internal detail");
    });
    routes_.get("/streams/{name}", [this](std::string_view name) {
      return http::stream(text_type, writer_of(name), this);
    });
    routes_.get("/path",
                [](Request& request) { return http::stream(text_type, late_path, &request); });
    routes_.get("/ignores_cancel", [this](Request&) { return ignores_cancel(*this); });
    routes_.get("/returns/not-found", []() -> Result<Response> { return fail(Errc::not_found); });
    routes_.get("/returns/broken",
                []() -> Result<Response> { return fail(Errc::bad_configuration); });
    routes_.get("/reset-content", [] {
      Response response = text("not to be sent");
      response.set_status(Status::reset_content);
      return response;
    });
  }

  using Writer = Task<Result<>> (*)(BodySink&, RequestLoopTest*);
  static Writer writer_of(std::string_view name) {
    if (name == "three") return three;
    if (name == "slow") return slow;
    if (name == "endless") return endless;
    if (name == "nothing") return nothing;
    if (name == "late-throw") return late_throw;
    if (name == "early-throw") return early_throw;
    if (name == "early-error") return early_error;
    if (name == "late-error") return late_error;
    if (name == "hides-errors") return hides_errors;
    return three;
  }

  static Task<Response> waits(RequestLoopTest& test) {
    const auto slept = co_await sleep(1h);
    test.noted_.push_back(slept ? "slept" : slept.error().message());
    co_return text("done\n");
  }
  static Task<> child(RequestLoopTest* test) {
    const auto slept = co_await sleep(1h);
    test->noted_.push_back(slept ? "slept" : slept.error().message());
  }
  static Task<Response> tree(Scope& scope, RequestLoopTest& test) {
    for (int i = 0; i < 3; ++i) scope.spawn(child(&test));
    co_return text("the scope is joined first\n");
  }
  /// Ignores a cancellation for two seconds.
  static Task<Response> ignores_cancel(RequestLoopTest& test) {
    const Context alone{test.loop_.get(), nullptr};
    static_cast<void>(co_await in_context(alone, nap()));
    test.noted_.push_back("woke up");
    co_return text("late\n");
  }
  static Task<Result<>> nap() { co_return co_await sleep(2s); }

  static Task<Result<>> three(BodySink& sink, RequestLoopTest*) {
    for (const std::string_view piece : {"one ", "", "two ", "three"}) {
      if (auto sent = co_await sink.write(piece); !sent) co_return sent;
    }
    co_return {};
  }
  static Task<Result<>> slow(BodySink& sink, RequestLoopTest*) {
    if (auto slept = co_await sleep(2s); !slept) co_return slept;
    co_return co_await sink.write("at last");
  }
  static Task<Result<>> endless(BodySink& sink, RequestLoopTest* test) {
    const std::string piece(10'000, 'x');
    for (;;) {
      if (auto sent = co_await sink.write(piece); !sent) {
        test->noted_.push_back(sent.error().message());
        co_return sent;
      }
      test->written_ += piece.size();
    }
  }
  static Task<Result<>> nothing(BodySink&, RequestLoopTest*) { co_return {}; }
  static Task<Result<>> late_throw(BodySink& sink, RequestLoopTest*) {
    static_cast<void>(co_await sink.write("a part"));
    throw std::runtime_error("internal detail");
  }
  static Task<Result<>> early_throw(BodySink&, RequestLoopTest*) {
    throw std::runtime_error("internal detail");
    co_return {};
  }
  static Task<Result<>> late_error(BodySink& sink, RequestLoopTest*) {
    static_cast<void>(co_await sink.write("a part"));
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> late_path(BodySink& sink, Request* request) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    static_cast<void>(co_await sink.write(request->path()));
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> early_error(BodySink&, RequestLoopTest*) {
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> hides_errors(BodySink& sink, RequestLoopTest*) {
    const std::string piece(10'000, 'x');
    for (int i = 0; i < 100; ++i) static_cast<void>(co_await sink.write(piece));
    co_return {};
  }

  void expect_nothing_left(MemoryPeer& peer) {
    peer.close();
    settle();
    expect_at_rest();
  }
  bool gone() { return server_->counters().connections_open.value() == 0; }

  std::vector<std::string> noted_;
  std::size_t written_ = 0;
};

TEST_F(RequestLoopTest, ExceptionTextOfAHandlerIsLoggedAndNotSent) {
  serve();
  const auto answers =
      sim::parse_http_responses(talk(connect(), get_of("/throws") + std::string(get)));
  ASSERT_EQ(sim::statuses_of(answers), "500 200");
  EXPECT_EQ(answers[0].body, "500 Internal Server Error\n");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /throws: handler failed: exception: internal detail");
  EXPECT_EQ(server_->counters().handler_failures.value(), 1u);
}

TEST_F(RequestLoopTest, StreamsAreChunkedIn11) {
  serve();
  const std::string raw = talk(connect(), get_of("/streams/three") + std::string(get));
  const auto answers = sim::parse_http_responses(raw);
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(answers[0].header("Content-Length"), "");
  EXPECT_EQ(answers[0].body, "one two three");
  EXPECT_NE(raw.find("\r\n\r\n4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"), raw.npos);
  EXPECT_EQ(sim::parse_http_responses(talk(connect(), get_of("/streams/nothing"))).at(0).body, "");
}

TEST_F(RequestLoopTest, StreamsEndWithTheConnectionIn10) {
  serve();
  MemoryPeer& peer = connect();
  const std::string raw =
      talk(peer, "GET /streams/three HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get_of("/", 0));
  const auto answers = sim::parse_http_responses(raw);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header("Connection"), "close");
  EXPECT_EQ(answers[0].header("Transfer-Encoding"), "");
  EXPECT_TRUE(answers[0].until_close);
  EXPECT_EQ(answers[0].body, "one two three");
  EXPECT_TRUE(peer.ended());
}

TEST_F(RequestLoopTest, HeadDoesNotRunTheStream) {
  serve();
  const std::string text =
      talk(connect(), "HEAD /streams/endless HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(text, {"HEAD"})), "200 200");
  EXPECT_EQ(written_, 0u);
}

TEST_F(RequestLoopTest, AHeadDoesNotWaitForASlowStream) {
  serve();
  MemoryPeer& peer = connect();
  std::string raw = talk(peer, std::string(get) + get_of("/streams/slow") + std::string(get));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(raw)), "200 200-");
  pass(2s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200");
  EXPECT_EQ(answers[1].body, "at last");
}

TEST_F(RequestLoopTest, AStreamThatFailsIsCutOff) {
  serve();
  MemoryPeer& peer = connect();
  const auto answers = sim::parse_http_responses(
      talk(peer, std::string(get) + get_of("/streams/late-throw") + std::string(get)));
  ASSERT_EQ(sim::statuses_of(answers), "200 200-");
  EXPECT_EQ(answers[1].body, "a part");
  EXPECT_TRUE(peer.ended());
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /streams/late-throw: handler failed: exception: internal detail");
}

TEST_F(RequestLoopTest, StreamThatReturnsAnErrorIsCutOffAndLogged) {
  serve();
  const auto answers = sim::parse_http_responses(talk(connect(), get_of("/streams/late-error")));
  ASSERT_EQ(sim::statuses_of(answers), "200-");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /streams/late-error: response body incomplete: not found");
}

// The handler has not waited, and the input is freed while the streaming function waits.
TEST_F(RequestLoopTest, WaitingStreamKeepsItsRequest) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/path"));
  pass(1s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200-");
  EXPECT_EQ(answers[0].body, "/path");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /path: response body incomplete: not found");
}

TEST_F(RequestLoopTest, ServerErrorsThatHandlersReturnAreLogged) {
  serve();
  EXPECT_EQ(statuses(get_of("/returns/not-found")), "404");
  EXPECT_TRUE(platform_.logged().empty());
  EXPECT_EQ(statuses(get_of("/returns/broken")), "500");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /returns/broken: handler failed: bad configuration");
}

TEST_F(RequestLoopTest, ResetContentHasNoBody) {
  serve();
  const std::string answer = talk(connect(), get_of("/reset-content") + std::string(get));
  EXPECT_NE(answer.find("205"), std::string::npos);
  EXPECT_NE(answer.find("Content-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "205 200");
}

TEST_F(RequestLoopTest, StreamThatFailsBeforeItsFirstByteIsAnswered) {
  serve();
  EXPECT_EQ(statuses(std::string(get) + get_of("/streams/early-throw") + std::string(get)),
            "200 500 200");
  EXPECT_EQ(statuses(std::string(get) + get_of("/streams/early-error") + std::string(get)),
            "200 404 200");
}

TEST_F(RequestLoopTest, AStreamWaitsForItsReader) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/endless"));
  settle();
  EXPECT_LE(written_, 64u * 1024);
  std::size_t seen = 0;
  for (int round = 0; round < 50; ++round) {
    seen += peer.read(30'000);
    settle();
    ASSERT_LE(written_, seen + 64 * 1024);
    ASSERT_GE(written_ + 20'000, seen);
  }
  expect_nothing_left(peer);
  EXPECT_EQ(noted_.size(), 1u);
}

TEST_F(RequestLoopTest, FinAfterTheRequestIsAnswered) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/slow"));
  peer.finish();
  pass(2s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].body, "at last");
  EXPECT_TRUE(peer.ended());
  expect_nothing_left(peer);
}

TEST_F(RequestLoopTest, ResetCancelsTheHandler) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/waits") + std::string(get));
  EXPECT_TRUE(noted_.empty());
  peer.reset();
  settle();
  EXPECT_EQ(noted_, std::vector<std::string>{make_error_code(Errc::cancelled).message()});
  EXPECT_EQ(server_->counters().requests.value(), 1u) << "the pipelined request is not started";
  expect_nothing_left(peer);
  EXPECT_TRUE(platform_.logged().empty()) << "a peer that leaves is no failure";
}

TEST_F(RequestLoopTest, ResetCancelsTheWholeTree) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/tree"));
  EXPECT_EQ(peer.received(), "");
  peer.reset();
  settle();
  EXPECT_EQ(noted_.size(), 3u);
  expect_nothing_left(peer);
}

TEST_F(RequestLoopTest, HandlerThatIgnoresCancellationIsAwaited) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/ignores_cancel"));
  peer.reset();
  pass(1s);
  EXPECT_FALSE(gone());
  EXPECT_TRUE(noted_.empty());
  pass(1s);
  EXPECT_TRUE(gone());
  EXPECT_EQ(noted_.size(), 1u);
  expect_nothing_left(peer);
}

TEST_F(RequestLoopTest, ResetWhileStreamingIsAnErrorOfTheWrite) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/endless"));
  settle();
  peer.reset();
  settle();
  EXPECT_EQ(noted_.size(), 1u);
  expect_nothing_left(peer);
}

TEST_F(RequestLoopTest, ResetWhileAStreamSleepsCancelsIt) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/streams/slow"));
  peer.reset();
  settle();
  expect_nothing_left(peer);
}

// A response that was cut must not look whole because of the bytes behind it.
TEST_F(RequestLoopTest, AStreamThatHidesItsErrorsIsStillCut) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/hides-errors") + std::string(get));
  pass(60s);  // the peer does not read, so the write times out
  EXPECT_TRUE(gone());
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200-");
  EXPECT_EQ(server_->counters().requests.value(), 1u);
  expect_nothing_left(peer);
}

TEST_F(RequestLoopTest, PeerMayLeaveDuringALargeBody) {
  routes_.get("/large", [] { return text(std::string(1'000'000, 'x')); });
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/large"));
  settle();
  peer.close();
  settle();
  EXPECT_TRUE(gone());
  expect_at_rest();
}

}  // namespace
}  // namespace weir::http
