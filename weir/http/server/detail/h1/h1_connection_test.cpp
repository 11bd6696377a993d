// Tests handlers and streams on a connection, also when the peer leaves.
#include "weir/http/server/detail/h1/h1_connection.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/client_error.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http::h1_connection_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string get_of(std::string_view path, int minor = 1) {
  return "GET " + std::string(path) + " HTTP/1." + std::to_string(minor) + "\r\nHost: a\r\n\r\n";
}

class H1ConnectionTest : public HttpTest {
 protected:
  H1ConnectionTest() {
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
    routes_.get("/noted/at-the-end", [this](Request& request) {
      auto note = std::make_shared<PathAtEnd>(request, noted_);
      return http::stream(text_type, with_note, std::move(note));
    });
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

  /// Notes the path of its request when it is destroyed.
  class PathAtEnd {
   public:
    PathAtEnd(const Request& request, std::vector<std::string>& noted)
        : request_(request), noted_(noted) {}
    ~PathAtEnd() { noted_.emplace_back(request_.path_text()); }
    PathAtEnd(const PathAtEnd&) = delete;
    PathAtEnd& operator=(const PathAtEnd&) = delete;

   private:
    const Request& request_;
    std::vector<std::string>& noted_;
  };
  static Task<Result<>> with_note(BodySink& sink, std::shared_ptr<PathAtEnd>) {
    co_return co_await sink.write("a body");
  }

  using Writer = Task<Result<>> (*)(BodySink&, H1ConnectionTest*);
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

  static Task<Response> waits(H1ConnectionTest& test) {
    const auto slept = co_await sleep(1h);
    test.noted_.push_back(slept ? "slept" : slept.error().message());
    co_return text("done\n");
  }
  static Task<> child(H1ConnectionTest* test) {
    const auto slept = co_await sleep(1h);
    test->noted_.push_back(slept ? "slept" : slept.error().message());
  }
  static Task<Response> tree(Scope& scope, H1ConnectionTest& test) {
    for (int i = 0; i < 3; ++i) scope.spawn(child(&test));
    co_return text("the scope is joined first\n");
  }
  /// Ignores a cancellation for two seconds.
  static Task<Response> ignores_cancel(H1ConnectionTest& test) {
    const Context alone{test.loop_.get(), nullptr};
    std::ignore = co_await in_context(alone, nap());
    test.noted_.push_back("woke up");
    co_return text("late\n");
  }
  static Task<Result<>> nap() { co_return co_await sleep(2s); }

  static Task<Result<>> three(BodySink& sink, H1ConnectionTest*) {
    for (const std::string_view piece : {"one ", "", "two ", "three"}) {
      if (auto sent = co_await sink.write(piece); !sent) co_return sent;
    }
    co_return {};
  }
  static Task<Result<>> slow(BodySink& sink, H1ConnectionTest*) {
    if (auto slept = co_await sleep(2s); !slept) co_return slept;
    co_return co_await sink.write("at last");
  }
  static Task<Result<>> endless(BodySink& sink, H1ConnectionTest* test) {
    const std::string piece(10'000, 'x');
    for (;;) {
      if (auto sent = co_await sink.write(piece); !sent) {
        test->noted_.push_back(sent.error().message());
        co_return sent;
      }
      test->written_ += piece.size();
    }
  }
  static Task<Result<>> nothing(BodySink&, H1ConnectionTest*) { co_return {}; }
  static Task<Result<>> late_throw(BodySink& sink, H1ConnectionTest*) {
    std::ignore = co_await sink.write("a part");
    throw std::runtime_error("internal detail");
  }
  static Task<Result<>> early_throw(BodySink&, H1ConnectionTest*) {
    throw std::runtime_error("internal detail");
    co_return {};
  }
  static Task<Result<>> late_error(BodySink& sink, H1ConnectionTest*) {
    std::ignore = co_await sink.write("a part");
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> late_path(BodySink& sink, Request* request) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    std::ignore = co_await sink.write(request->path_text());
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> early_error(BodySink&, H1ConnectionTest*) {
    co_return fail(Errc::not_found);
  }
  static Task<Result<>> hides_errors(BodySink& sink, H1ConnectionTest*) {
    const std::string piece(10'000, 'x');
    for (int i = 0; i < 100; ++i) std::ignore = co_await sink.write(piece);
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

TEST_F(H1ConnectionTest, ExceptionTextOfAHandlerIsLoggedAndNotSent) {
  serve();
  const auto answers =
      sim::parse_http_responses(talk(connect(), get_of("/throws") + std::string(get)));
  ASSERT_EQ(sim::statuses_of(answers), "500 200");
  EXPECT_EQ(answers[0].body, R"({"title":"Internal Server Error","status":500})");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /throws: handler failed: exception: internal detail");
  EXPECT_EQ(server_->counters().handler_failures.value(), 1u);
}

TEST_F(H1ConnectionTest, RequestsOfOneTurnAreLimited) {
  std::string order;
  routes_.get("/slow", [&] {
    order += 's';
    platform_.clock().move_to(platform_.now() + 60us);
    return text("hello\n");
  });
  routes_.get("/other", [&] { return order += 'o', text("other\n"); });
  serve();
  MemoryPeer& peer = connect();
  MemoryPeer& other = connect();
  settle();
  std::string many;
  for (int count = 0; count < 100; ++count) many += get_of("/slow");
  peer.send(many);
  other.send(get_of("/other"));
  settle();
  EXPECT_EQ(order.size(), 101U);
  EXPECT_LE(order.find('o'), 9U) << "200 us, and the requests until the next look at the clock";
  EXPECT_EQ(sim::parse_http_responses(talk(peer, "")).size(), 100U);
  const std::uint64_t before = loop_->counters().turns.value();
  std::string quick;
  for (int count = 0; count < 400; ++count) quick += get;
  EXPECT_EQ(sim::parse_http_responses(talk(connect(), quick)).size(), 400U);
  EXPECT_GE(loop_->counters().turns.value() - before, 400U / TurnShare::requests_max);
}

TEST_F(H1ConnectionTest, AHandlerOfHeadNeedNotKnowTheLength) {
  routes_.get("/own", [] { return text("thirteen byte"); });
  routes_.head("/own", [] { return Response(Status::ok); });
  routes_.get("/sized", [] { return text("thirteen byte"); });
  routes_.head("/sized", [] { return text("thirteen byte"); });
  routes_.get("/empty", [] { return text(""); });
  serve();
  const auto head = [this](std::string_view path) {
    return talk(connect(), "HEAD " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  const std::string own = head("/own");
  EXPECT_TRUE(own.starts_with("HTTP/1.1 200 ")) << own;
  EXPECT_EQ(own.find("Content-Length"), own.npos) << own;
  EXPECT_EQ(own.find("Transfer-Encoding"), own.npos) << own;
  EXPECT_NE(head("/sized").find("Content-Length: 13\r\n"), own.npos);
  EXPECT_NE(head("/empty").find("Content-Length: 0\r\n"), own.npos);
}

TEST_F(H1ConnectionTest, StreamsAreChunkedIn11) {
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

TEST_F(H1ConnectionTest, StreamsEndWithTheConnectionIn10) {
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

TEST_F(H1ConnectionTest, HeadDoesNotRunTheStream) {
  serve();
  const std::string text =
      talk(connect(), "HEAD /streams/endless HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(text, {"HEAD"})), "200 200");
  EXPECT_EQ(written_, 0u);
}

TEST_F(H1ConnectionTest, AHeadDoesNotWaitForASlowStream) {
  serve();
  MemoryPeer& peer = connect();
  std::string raw = talk(peer, std::string(get) + get_of("/streams/slow") + std::string(get));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(raw)), "200 200-");
  pass(2s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200");
  EXPECT_EQ(answers[1].body, "at last");
}

TEST_F(H1ConnectionTest, AStreamThatFailsIsCutOff) {
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

TEST_F(H1ConnectionTest, StreamThatReturnsAnErrorIsCutOffAndLogged) {
  serve();
  const auto answers = sim::parse_http_responses(talk(connect(), get_of("/streams/late-error")));
  ASSERT_EQ(sim::statuses_of(answers), "200-");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /streams/late-error: response body incomplete: not found");
}

// The handler has not waited, and the input is freed while the streaming function waits.
TEST_F(H1ConnectionTest, WaitingStreamKeepsItsRequest) {
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

// Each of the two requests needs a copy of its head: the input is freed behind the second head.
TEST_F(H1ConnectionTest, WaitingHandlersKeepTheirHeadsAndTheirParams) {
  routes_.get("/of/{name}/{rest...}",
              [](Request& request, std::string_view name, Wildcard rest) -> Task<Response> {
                std::ignore = co_await sleep(1s);
                co_return text(std::string(request.path_text()) + " " + std::string(name) + " " +
                               std::string(rest.raw()));
              });
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/of/one/a/b") + get_of("/of/two/c"));
  pass(2s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].body, "/of/one/a/b one a/b");
  EXPECT_EQ(answers[1].body, "/of/two/c two c");
}

TEST_F(H1ConnectionTest, ServerErrorsThatHandlersReturnAreLogged) {
  serve();
  EXPECT_EQ(statuses(get_of("/returns/not-found")), "404");
  EXPECT_TRUE(platform_.logged().empty());
  EXPECT_EQ(statuses(get_of("/returns/broken")), "500");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /returns/broken: handler failed: bad configuration");
}

TEST_F(H1ConnectionTest, ResetContentHasNoBody) {
  serve();
  const std::string answer = talk(connect(), get_of("/reset-content") + std::string(get));
  EXPECT_NE(answer.find("205"), std::string::npos);
  EXPECT_NE(answer.find("Content-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "205 200");
}

TEST_F(H1ConnectionTest, StreamThatFailsBeforeItsFirstByteIsAnswered) {
  serve();
  EXPECT_EQ(statuses(std::string(get) + get_of("/streams/early-throw") + std::string(get)),
            "200 500 200");
  EXPECT_EQ(statuses(std::string(get) + get_of("/streams/early-error") + std::string(get)),
            "200 404 200");
}

constexpr std::string_view pieces_with_empty_ones[] = {"", "ab", "", "", "c", ""};
Task<Result<>> write_empty_pieces_too(BodySink& sink) {
  for (const std::string_view piece : pieces_with_empty_ones) {
    if (auto sent = co_await sink.write(piece); !sent) co_return sent;
  }
  co_return {};
}
Task<Result<>> write_only_empty_piece(BodySink& sink) {
  co_return co_await sink.write(std::string_view());
}
Task<Result<>> fail_behind_empty_piece(BodySink& sink) {
  if (auto sent = co_await sink.write(std::string_view()); !sent) co_return sent;
  co_return fail(Errc::not_found);
}

// A chunk of size 0 would end the body (RFC 9112 §7.1).
TEST_F(H1ConnectionTest, EmptyPieceOfAStreamSendsNothing) {
  routes_.get("/pieces", [] { return http::stream(text_type, write_empty_pieces_too); });
  routes_.get("/only-empty", [] { return http::stream(text_type, write_only_empty_piece); });
  routes_.get("/fails", [] { return http::stream(text_type, fail_behind_empty_piece); });
  serve();
  EXPECT_TRUE(
      talk(connect(), get_of("/pieces")).ends_with("\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"));
  EXPECT_TRUE(talk(connect(), get_of("/pieces", 0)).ends_with("\r\n\r\nabc"));
  EXPECT_TRUE(talk(connect(), get_of("/only-empty")).ends_with("\r\n\r\n0\r\n\r\n"));
  EXPECT_EQ(statuses(get_of("/pieces") + get_of("/only-empty") + std::string(get)), "200 200 200");
  EXPECT_EQ(statuses(get_of("/fails") + std::string(get)), "404 200") << "nothing was sent yet";
}

// The request lives until the body is sent, so the arguments of the function may refer to it.
TEST_F(H1ConnectionTest, TheRequestOutlivesTheArgumentsOfAStreamingFunction) {
  serve();
  EXPECT_EQ(statuses(get_of("/noted/at-the-end") + std::string(get)), "200 200");
  EXPECT_EQ(noted_, (std::vector<std::string>{"/noted/at-the-end"}));
}

TEST_F(H1ConnectionTest, AStreamWaitsForItsReader) {
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

TEST_F(H1ConnectionTest, FinAfterTheRequestIsAnswered) {
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

TEST_F(H1ConnectionTest, ResetCancelsTheHandler) {
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

TEST_F(H1ConnectionTest, ResetCancelsTheWholeTree) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/tree"));
  EXPECT_EQ(peer.received(), "");
  peer.reset();
  settle();
  EXPECT_EQ(noted_.size(), 3u);
  expect_nothing_left(peer);
}

TEST_F(H1ConnectionTest, HandlerThatIgnoresCancellationIsAwaited) {
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

TEST_F(H1ConnectionTest, ResetWhileStreamingIsAnErrorOfTheWrite) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/endless"));
  settle();
  peer.reset();
  settle();
  EXPECT_EQ(noted_.size(), 1u);
  expect_nothing_left(peer);
}

TEST_F(H1ConnectionTest, ResetWhileAStreamSleepsCancelsIt) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/streams/slow"));
  peer.reset();
  settle();
  expect_nothing_left(peer);
}

// A response that was cut must not look whole because of the bytes behind it.
TEST_F(H1ConnectionTest, AStreamThatHidesItsErrorsIsStillCut) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/streams/hides-errors") + std::string(get));
  pass(60s);  // the peer does not read, so the write times out
  EXPECT_TRUE(gone());
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200-");
  EXPECT_EQ(server_->counters().requests.value(), 1u);
  expect_nothing_left(peer);
}

TEST_F(H1ConnectionTest, PeerMayLeaveDuringALargeBody) {
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

TEST_F(H1ConnectionTest, ErrorsOfHandlersAreLoggedByStatusAndCause) {
  struct Row {
    const char* name;
    Errc error;
    const char* status;
    const char* logged;  ///< nullptr if nothing is logged
  };
  const Row rows[] = {
      {"not-found", Errc::not_found, "404", nullptr},
      {"timed-out", Errc::timed_out, "504", "handler failed: "},
      {"cancelled", Errc::cancelled, "503", nullptr},
      {"closed", Errc::closed, "503", "handler failed: "},
      {"unsupported", Errc::unsupported, "501", "handler failed: "},
      {"configuration", Errc::bad_configuration, "500", "handler failed: "},
  };
  for (const Row& row : rows) {
    const Errc error = row.error;
    const auto pattern = Pattern::parse("/fails/" + std::string(row.name));
    ASSERT_TRUE(routes_.get(*pattern, [error]() -> Result<Response> { return fail(error); }));
  }
  serve();
  std::size_t lines = 0;
  for (const Row& row : rows) {
    EXPECT_EQ(statuses(get_of("/fails/" + std::string(row.name)) + std::string(get)),
              std::string(row.status) + " 200");
    if (row.logged != nullptr) {
      ++lines;
      ASSERT_EQ(platform_.logged().size(), lines) << row.name;
      EXPECT_EQ(platform_.logged().back(), "weir: GET /fails/" + std::string(row.name) + ": " +
                                               row.logged + make_error_code(row.error).message());
    }
    EXPECT_EQ(platform_.logged().size(), lines) << row.name;
    EXPECT_EQ(server_->counters().handler_failures.value(), lines) << row.name;
  }
}

TEST_F(H1ConnectionTest, ManyRefusedRequestsAreOneLinePerSecond) {
  routes_.get("/busy", []() -> Result<Response> { return fail(ClientError::queue_full); });
  routes_.get("/late", []() -> Result<Response> { return fail(ClientError::queue_timed_out); });
  serve();
  for (int count = 0; count < 10; ++count) {
    EXPECT_EQ(statuses(get_of("/busy") + get_of("/late")), "503 503");
  }
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /busy: handler failed: queue_full");
  EXPECT_EQ(server_->counters().handler_failures.value(), 20U);
  pass(1s);
  EXPECT_EQ(statuses(get_of("/late")), "503");
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[1],
            "weir: GET /late: handler failed: queue_timed_out (and 19 earlier requests)");
}

TEST_F(H1ConnectionTest, LogLineEscapesOnlyWhatIsNotPrintable) {
  routes_.get("/throws-text",
              []() -> Response { throw std::runtime_error("caf\xc3\xa9 ~ \x1f \x7f!"); });
  routes_.get("/header", [] {
    Response response = text("never seen");
    response.add_header(std::string_view("a\0b", 3), "value");
    return response;
  });
  serve();
  EXPECT_EQ(statuses(get_of("/throws-text")), "500");
  EXPECT_EQ(statuses(get_of("/header")), "500");
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /throws-text: handler failed: exception: caf\xc3\xa9 ~ \\x1f \\x7f!");
  EXPECT_EQ(platform_.logged()[1], "weir: GET /header: cannot send the header a?b");
}

TEST_F(H1ConnectionTest, StatusesFrom200To599AreSent) {
  routes_.get("/status/{code}", [](int code) {
    Response response = text("own text");
    response.set_status(Status{static_cast<std::uint16_t>(code)});
    return response;
  });
  serve();
  for (const int code : {199, 200, 201, 299, 400, 500, 501, 599, 600, 999}) {
    const bool valid = code >= 200 && code <= 599;
    const auto answers =
        sim::parse_http_responses(talk(connect(), get_of("/status/" + std::to_string(code))));
    ASSERT_EQ(sim::statuses_of(answers), std::to_string(valid ? code : 500)) << code;
    EXPECT_EQ(answers[0].body,
              valid ? "own text" : R"({"title":"Internal Server Error","status":500})")
        << code;
  }
  EXPECT_EQ(server_->counters().handler_failures.value(), 3U);
  EXPECT_EQ(platform_.logged().size(), 3U);
}

TEST_F(H1ConnectionTest, HeadersOfTheHandlerAreSentInTheirOrder) {
  routes_.get("/headers", [] {
    Response response = text("body");
    response.add_header("X-One", "1");
    response.add_header("X-Two", "2");
    response.set_header("Content-Type", "text/csv");
    return response;
  });
  serve();
  const std::string raw = talk(connect(), get_of("/headers"));
  EXPECT_EQ(raw,
            "HTTP/1.1 200 OK\r\nDate: Wed, 01 Jan 2025 00:00:00 GMT\r\nContent-Length: 4\r\n"
            "X-One: 1\r\nX-Two: 2\r\nContent-Type: text/csv\r\n\r\nbody");
}

TEST_F(H1ConnectionTest, MediaTypesOfAnyLengthAreSent) {
  routes_.get("/type/42", [] {
    return Response(Status::ok, "application/x-42-42-42-42-42-42-42-42-42.", Body(Literal("a")));
  });
  routes_.get("/type/43", [] {
    return Response(Status::ok, "application/x-43-43-43-43-43-43-43-43-43..", Body(Literal("b")));
  });
  routes_.get("/type/200", [] {
    return Response(Status::ok,
                    "application/"
                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                    Body(Literal("c")));
  });
  routes_.get("/type/none", [] { return Response(Status::ok); });
  serve();
  std::string requests;
  for (const char* const size : {"42", "43", "200", "none", "42", "200"}) {
    requests += get_of("/type/" + std::string(size));
  }
  const auto answers = sim::parse_http_responses(talk(connect(), requests));
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200 200 200 200");
  EXPECT_EQ(answers[0].header("Content-Type"), "application/x-42-42-42-42-42-42-42-42-42.");
  EXPECT_EQ(answers[1].header("Content-Type"), "application/x-43-43-43-43-43-43-43-43-43..");
  EXPECT_EQ(answers[2].header("Content-Type").substr(0, 13), "application/x");
  EXPECT_EQ(answers[3].header("Content-Type"), "");
  EXPECT_EQ(answers[4].body, "a");
  EXPECT_EQ(answers[5].body, "c");
}

TEST_F(H1ConnectionTest, HeadOfASmallTextHasNoBody) {
  serve();
  const auto answers = sim::parse_http_responses(
      talk(connect(), "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get)), {"HEAD", "GET"});
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].header("Content-Length"), "6");
  EXPECT_EQ(answers[1].body, "hello\n");
}

TEST_F(H1ConnectionTest, HeadOfAStreamKeepsA10ConnectionOpen) {
  serve();
  MemoryPeer& peer = connect();
  const auto answers = sim::parse_http_responses(
      talk(peer,
           "HEAD /streams/three HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
           "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
      {"HEAD", "GET"});
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].header("Connection"), "keep-alive");
  EXPECT_FALSE(peer.ended());
}

// The stream would end with the connection, but the response that replaces it has a length.
TEST_F(H1ConnectionTest, StreamThatCannotBeSentKeepsA10ConnectionOpen) {
  routes_.get("/bad-stream", [this] {
    Response response = http::stream(text_type, three, this);
    response.add_header("X", "a\nb");
    return response;
  });
  serve();
  MemoryPeer& peer = connect();
  const auto answers =
      sim::parse_http_responses(talk(peer,
                                     "GET /bad-stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                     "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  ASSERT_EQ(sim::statuses_of(answers), "500 200");
  EXPECT_EQ(answers[0].header("Connection"), "keep-alive");
  EXPECT_EQ(answers[0].body, R"({"title":"Internal Server Error","status":500})");
  EXPECT_FALSE(peer.ended());
}

TEST_F(H1ConnectionTest, StreamThatFailsBeforeItsFirstByteIsLoggedByItsStatus) {
  routes_.get("/fails-early", [] {
    return http::stream(
        text_type, [](BodySink&) -> Task<Result<>> { co_return fail(Errc::bad_configuration); });
  });
  serve();
  EXPECT_EQ(statuses(get_of("/streams/early-error")), "404");
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
  EXPECT_TRUE(platform_.logged().empty());
  EXPECT_EQ(statuses(get_of("/fails-early") + std::string(get)), "500 200");
  EXPECT_EQ(server_->counters().handler_failures.value(), 1U);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /fails-early: response body incomplete: bad configuration");
  EXPECT_EQ(statuses(get_of("/streams/early-throw") + std::string(get)), "500 200");
  EXPECT_EQ(server_->counters().handler_failures.value(), 2U);
}

// The head of the response was sent before the function failed.
TEST_F(H1ConnectionTest, StreamThatWaitedAndThenFailsIsCutOff) {
  routes_.get("/fails-late/{error}", [](std::string_view name) {
    const bool cancelled = name == "cancelled";
    return http::stream(
        text_type,
        [](BodySink&, Errc error) -> Task<Result<>> {
          if (auto slept = co_await sleep(1s); !slept) co_return fail(Errc::not_found);
          co_return fail(error);
        },
        cancelled ? Errc::cancelled : Errc::not_found);
  });
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/fails-late/not-found") + std::string(get));
  pass(1s);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200-");
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().handler_failures.value(), 1U);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /fails-late/not-found: response body incomplete: not found");
  MemoryPeer& cancelled = connect();
  talk(cancelled, get_of("/fails-late/cancelled"));
  pass(1s);
  EXPECT_TRUE(gone());
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(cancelled.received())), "200-");
  // The peer is to blame if it leaves before the function fails.
  MemoryPeer& left = connect();
  talk(left, get_of("/fails-late/not-found"));
  left.reset();
  settle();
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().handler_failures.value(), 1U);
  EXPECT_EQ(platform_.logged().size(), 1U);
}

TEST_F(H1ConnectionTest, RequestsAndResponsesAreCounted) {
  serve();
  const auto expect_counts = [this](std::uint64_t requests, std::uint64_t responses) {
    EXPECT_EQ(server_->counters().requests.value(), requests);
    EXPECT_EQ(server_->counters().responses.value(), responses);
  };
  MemoryPeer& peer = connect();
  talk(peer, std::string(get) + get_of("/streams/three") + get_of("/waits"));
  expect_counts(3, 2);
  peer.reset();
  settle();
  expect_counts(3, 2);
  statuses("nonsense\r\n");
  expect_counts(3, 3);
  statuses(get_of("/nowhere"));
  expect_counts(4, 4);
  MemoryPeer& streaming = connect();
  streaming.send(get_of("/streams/endless"));
  settle();
  streaming.reset();
  settle();
  expect_counts(5, 4);
}

// The handler may end in the turn in which its client leaves, on either side of the notice.
TEST_F(H1ConnectionTest, HandlerMayEndInTheTurnOfTheHangup) {
  ManualResetEvent gate;
  routes_.get("/gate", [&gate](Request&) -> Task<Response> {
    const auto passed = co_await gate.wait();
    co_return passed ? text("passed") : text("cancelled");
  });
  routes_.get("/naps", [](Request&) -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text("slept");
  });
  serve();
  for (const int order : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(order);
    gate.reset();
    MemoryPeer& peer = connect();
    talk(peer, get_of(order == 4 ? "/naps" : "/gate") + std::string(get));
    if (order == 0) gate.set();
    if (order == 1 || order == 3) turn();
    if (order == 4) {
      pass(999ms);
      peer.reset();
      pass(1ms);
    } else {
      peer.reset();
      if (order == 3) turn();
      if (order != 0) gate.set();
    }
    settle();
    EXPECT_TRUE(gone());
    peer.close();
    settle();
    expect_at_rest();
  }
}

TEST_F(H1ConnectionTest, ResetAfterAWaitingHandlerHasAnsweredIsHarmless) {
  serve();
  for (const char* const path : {"/throws", "/streams/slow"}) {
    MemoryPeer& peer = connect();
    talk(peer, get_of(path));
    pass(2s);
    talk(peer, get);
    EXPECT_FALSE(gone());
    peer.reset();
    settle();
    EXPECT_TRUE(gone());
    expect_nothing_left(peer);
  }
}

TEST_F(H1ConnectionTest, ParseErrorOfA10RequestLingers) {
  serve();
  MemoryPeer& peer = connect();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(
                talk(peer, "GET / HTTP/1.0\r\nConnection: close\r\nX : y\r\n\r\n"))),
            "400");
  EXPECT_FALSE(gone());
  pass(1s);
  EXPECT_TRUE(gone());
}

}  // namespace
}  // namespace weir::http::h1_connection_test
