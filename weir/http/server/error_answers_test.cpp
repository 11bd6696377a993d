// Tests of the statuses of errors, and of errors that are sent before the body has arrived.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::error_answers_test {
namespace {

class ErrorAnswersTest : public HttpTest {
 protected:
  ErrorAnswersTest() {
    routes_.get("/", [] { return text("root"); });
    routes_.post("/read", [](Request& request) -> Task<Result<Response>> {
      WEIR_CO_TRY(const std::string body, co_await request.body());
      co_return text(body);
    });
    routes_.post("/own-timeout", []() -> Task<Result<Response>> {
      WEIR_CO_TRY(co_await timeout(2s, sleep(1h)));
      co_return text("late");
    });
    const auto endless = []() -> Task<Result<Response>> {
      WEIR_CO_TRY(co_await sleep(1h));
      co_return text("late");
    };
    routes_.post("/route-timeout", endless, {.timeout = 2s});
    for (const ClientError error :
         {ClientError::connect_failed, ClientError::head_timed_out, ClientError::queue_timed_out}) {
      const auto pattern = Pattern::parse("/client/" + std::string(name_of(error)));
      std::ignore = routes_.post(*pattern, [error]() -> Result<Response> { return fail(error); });
    }
    routes_.post("/forbidden", [] { return Status::forbidden; });
    routes_.post("/later", []() -> Task<Response> {
      std::ignore = co_await sleep(1s);
      co_return Status::forbidden;
    });
    routes_.post("/counted", [this] {
      ++calls_;
      return text("counted");
    });
    routes_.post("/token", [](Bearer bearer, Request& request) -> Task<Result<Response>> {
      WEIR_CO_TRY(const std::string body, co_await request.body());
      co_return text(std::string(bearer.token) + body);
    });
    routes_.post("/moved", [] { return redirect("/"); });
    routes_.post("/ignored", [] { return text("ignored"); });
    routes_.post("/streamed", [] {
      return stream(text_type, {.status = Status::forbidden},
                    [](BodySink& sink) -> Task<Result<>> { return sink.write("streamed"); });
    });
  }
  static std::string post_of(std::string_view path, std::string_view framing) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(framing) +
           "\r\n\r\n";
  }
  static std::string answers(MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }
  std::uint64_t rejected(ParseError error) {
    return server_->counters().parse_errors[static_cast<std::size_t>(error)].value();
  }

  unsigned calls_ = 0;
  static constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  static constexpr std::string_view ten_bytes = "Content-Length: 10";
  static constexpr std::string_view no_bytes = "Content-Length: 0";
  static constexpr std::string_view chunked = "Transfer-Encoding: chunked";
};

TEST_F(ErrorAnswersTest, TheStatusOfATimeoutNamesTheSideThatWasLate) {
  serve();
  MemoryPeer& slow = connect();
  talk(slow, post_of("/read", ten_bytes));
  pass(5s);
  EXPECT_EQ(answers(slow), "408");
  EXPECT_TRUE(platform_.logged().empty());
  MemoryPeer& peer = connect();
  talk(peer, post_of("/route-timeout", no_bytes));
  pass(2s);
  EXPECT_EQ(answers(peer), "503");
  EXPECT_TRUE(platform_.logged().empty());
  talk(peer, post_of("/own-timeout", no_bytes));
  pass(2s);
  EXPECT_EQ(answers(peer), "503 504");
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0], "weir: POST /own-timeout: handler failed: " +
                                       make_error_code(Errc::timed_out).message());
}

TEST_F(ErrorAnswersTest, AHandlerWithoutTheBodyIsCalledWhenTheHeadHasArrived) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/counted", ten_bytes));
  EXPECT_EQ(calls_, 1U);
  EXPECT_EQ(answers(peer), "");
  talk(peer, "0123456789");
  EXPECT_EQ(calls_, 1U);
  EXPECT_EQ(answers(peer), "200");
}

TEST_F(ErrorAnswersTest, AHandlerTakesABearerWhoseTokenOutlivesTheWaitForTheBody) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/token", "Authorization: Bearer abc.def\r\nContent-Length: 10"));
  pass(1s);
  talk(peer, "0123456789");
  EXPECT_TRUE(peer.received().ends_with("abc.def0123456789")) << peer.received();
  MemoryPeer& guest = connect();
  talk(guest, post_of("/token", no_bytes));
  EXPECT_EQ(answers(guest), "401");
  EXPECT_TRUE(guest.received().contains("WWW-Authenticate: Bearer\r\n")) << guest.received();
}

TEST_F(ErrorAnswersTest, AnErrorOfAClientNamesTheOtherServer) {
  serve();
  EXPECT_EQ(statuses(post_of("/client/connect_failed", no_bytes)), "502");
  EXPECT_EQ(statuses(post_of("/client/head_timed_out", no_bytes)), "504");
  EXPECT_EQ(statuses(post_of("/client/queue_timed_out", no_bytes)), "503");
  ASSERT_EQ(platform_.logged().size(), 3U);
  EXPECT_EQ(platform_.logged()[1],
            "weir: POST /client/head_timed_out: handler failed: head_timed_out");
}

TEST_F(ErrorAnswersTest, AnErrorDoesNotWaitForTheBody) {
  serve();
  struct Row {
    const char* path;
    const char* status;
  };
  for (const Row row : {Row{"/forbidden", "403"}, Row{"/moved", "303"}}) {
    for (const std::string_view framing : {ten_bytes, chunked}) {
      SCOPED_TRACE(row.path + std::string(framing));
      MemoryPeer& peer = connect();
      talk(peer, post_of(row.path, framing));
      EXPECT_EQ(answers(peer), row.status);
      EXPECT_FALSE(peer.ended()) << "the connection stays open for the rest";
      pass(1s);
      talk(peer, framing == chunked ? "5\r\n01234\r\n" : "01234");
      pass(1s);
      talk(peer, framing == chunked ? "5\r\n56789\r\n0\r\n\r\n" : "56789");
      talk(peer, get);
      EXPECT_EQ(answers(peer), std::string(row.status) + " 200");
    }
  }
  MemoryPeer& waiting = connect();
  talk(waiting, post_of("/later", ten_bytes));
  pass(1s);
  EXPECT_EQ(answers(waiting), "403");
  talk(waiting, "0123456789" + std::string(get));
  EXPECT_EQ(answers(waiting), "403 200");
}

TEST_F(ErrorAnswersTest, ASlowBodyDoesNotReplaceAnErrorByAnother) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/forbidden", ten_bytes) + "01234");
  pass(20s);
  EXPECT_EQ(answers(peer), "403");
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(rejected(ParseError::body_timed_out), 1U);
  pass(1s);
  EXPECT_EQ(server_->counters().connections_open.value(), 0U);
}

TEST_F(ErrorAnswersTest, ABodyThatBecomesMalformedAfterTheErrorClosesTheConnection) {
  serve({.unread_body_max = 8});
  MemoryPeer& bad = connect();
  talk(bad, post_of("/forbidden", chunked));
  talk(bad, "g\r\n" + std::string(get));
  EXPECT_EQ(answers(bad), "403");
  EXPECT_TRUE(bad.ended());
  EXPECT_EQ(rejected(ParseError::bad_chunk_size), 1U);
  MemoryPeer& large = connect();
  talk(large, post_of("/forbidden", chunked));
  talk(large, "9\r\n012345678\r\n0\r\n\r\n" + std::string(get));
  EXPECT_EQ(answers(large), "403");
  EXPECT_TRUE(large.ended());
  MemoryPeer& cut = connect();
  talk(cut, post_of("/forbidden", chunked));
  cut.finish();
  settle();
  EXPECT_EQ(answers(cut), "403");
  EXPECT_TRUE(cut.ended());
}

TEST_F(ErrorAnswersTest, OnlyAMalformedBodyThatHasArrivedReplacesTheError) {
  serve();
  const std::string head = post_of("/forbidden", chunked);
  const struct {
    std::string body;
    std::size_t bad_at;
  } cases[] = {
      {"g\r\n", 0}, {"5\r\n01234X", 8}, {"-1\r\n", 0}, {"5\r\n01234\r\n0\r\nX : y\r\n\r\n", 14}};
  for (const auto& [body, bad_at] : cases) {
    const std::string request = head + body;
    EXPECT_EQ(statuses(request + std::string(get)), "400") << request;
    for (std::size_t cut = 1; cut < request.size(); ++cut) {
      MemoryPeer& peer = connect();
      talk(peer, request.substr(0, cut));
      talk(peer, request.substr(cut) + std::string(get));
      // The first byte that shows the fault is in the first part, or the error precedes it.
      const std::size_t fault = head.size() + bad_at;
      EXPECT_EQ(answers(peer), cut >= head.size() && cut <= fault ? "403" : "400")
          << cut << ": " << request;
      EXPECT_TRUE(peer.ended()) << cut << ": " << request;
    }
  }
}

TEST_F(ErrorAnswersTest, ASuccessAStreamAndTheRoutersOwnAnswersWaitForTheBody) {
  serve();
  for (const std::string_view path : {"/ignored", "/streamed", "/nowhere", "/"}) {
    MemoryPeer& peer = connect();
    talk(peer, post_of(path, chunked));
    EXPECT_EQ(answers(peer), "") << path;
    talk(peer, "g\r\n");
    EXPECT_EQ(answers(peer), "400") << path;
  }
}

TEST_F(ErrorAnswersTest, AnEarlyErrorLeavesNothingBehind) {
  serve();
  MemoryPeer& gone = connect();
  talk(gone, post_of("/forbidden", ten_bytes));
  gone.reset();
  settle();
  MemoryPeer& closing = connect();
  talk(closing, post_of("/forbidden", "Connection: close\r\nContent-Length: 10"));
  EXPECT_EQ(answers(closing), "403");
  EXPECT_TRUE(closing.ended());
  pass(1s);
  expect_at_rest();
  MemoryPeer& draining = connect();
  talk(draining, post_of("/forbidden", ten_bytes));
  drain();
  pass(5s);
  EXPECT_EQ(answers(draining), "403");
  EXPECT_TRUE(draining.ended());
}

}  // namespace
}  // namespace weir::http::error_answers_test
