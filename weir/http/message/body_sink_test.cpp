// Tests of streamed bodies through a server: BodySink, and the request's body meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::body_sink_test {
namespace {

/// Returns a request for "/" whose response is chunked in HTTP/1.1 only.
std::string get_of(int minor) {
  return "GET / HTTP/1." + std::to_string(minor) + "\r\nHost: a\r\n\r\n";
}

class BodySinkTest : public HttpTest {
 protected:
  bool gone() { return server_->counters().connections_open.value() == 0; }
};

#ifndef NDEBUG
Task<Result<>> write_twice(BodySink& sink, std::string piece) {
  auto one = sink.write(piece);
  auto other = sink.write(piece);
  std::ignore = co_await all(std::move(one), std::move(other));
  co_return {};
}

// The client does not read, so the first call waits.
TEST_F(BodySinkTest, AssertsThatCallsDoNotOverlap) {
  routes_.get("/", [] { return stream(text_type, write_twice, std::string(1'000'000, 'x')); });
  serve();
  for (const int minor : {0, 1}) {
    MemoryPeer& peer = connect();
    const auto ask = [&] {
      peer.send(get_of(minor));
      settle();
    };
    EXPECT_DEATH(ask(), "BodySink::write\\(\\) must not overlap") << minor;
  }
}
#endif

/// Reuses one piece for calls that follow each other, some of which wait for the client.
Task<Result<>> write_numbers(BodySink& sink, int count) {
  std::string piece;
  for (int number = 0; number < count; ++number) {
    piece = std::to_string(number) + std::string(10'000, ' ') + "\n";
    if (auto sent = co_await sink.write(piece); !sent) co_return sent;
    piece.assign(piece.size(), '!');
    if (number % 7 == 0) std::ignore = co_await sleep(1ms);
  }
  co_return {};
}

TEST_F(BodySinkTest, PieceMayBeReusedWhenTheCallReturns) {
  constexpr int count = 50;
  routes_.get("/", [] { return stream(text_type, write_numbers, count); });
  serve();
  std::string expected;
  for (int number = 0; number < count; ++number) {
    expected += std::to_string(number) + std::string(10'000, ' ') + "\n";
  }
  for (const int minor : {0, 1}) {
    MemoryPeer& peer = connect();
    peer.send(get_of(minor));
    for (int round = 0; round < 200; ++round) {
      pass(1ms);
      peer.read(30'000);
    }
    const auto answers = sim::parse_http_responses(peer.received());
    ASSERT_EQ(sim::statuses_of(answers), "200") << minor;
    EXPECT_TRUE(answers[0].body == expected) << minor;
  }
}

std::error_code error_of(const Result<>& result) {
  return result ? std::error_code() : result.error();
}

/// Gives the client two seconds for a piece, and then continues as if nothing had happened.
Task<Result<>> write_with_timeout(BodySink& sink, std::vector<std::error_code>* seen) {
  const std::string piece(1'000'000, 'x');
  auto first = sink.write(piece);
  const auto cut = co_await timeout(2s, std::move(first));
  seen->push_back(error_of(cut));
  const auto later = co_await sink.write("more");
  seen->push_back(error_of(later));
  co_return {};
}

TEST_F(BodySinkTest, CancelledCallCutsTheResponseOff) {
  std::vector<std::error_code> seen;
  routes_.get("/", [&seen] { return stream(text_type, write_with_timeout, &seen); });
  serve();
  for (const int minor : {0, 1}) {
    SCOPED_TRACE(minor);
    seen.clear();
    MemoryPeer& peer = connect();
    peer.send(get_of(minor) + get_of(minor));
    settle();
    pass(1999ms);
    EXPECT_FALSE(gone());
    EXPECT_TRUE(seen.empty());
    pass(1ms);
    EXPECT_TRUE(gone()) << "the connection closes";
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0], Errc::timed_out);
    EXPECT_EQ(seen[1], Errc::cancelled);
    const std::string& received = peer.received();
    EXPECT_TRUE(received.starts_with("HTTP/1.1 200 ")) << received.substr(0, 40);
    EXPECT_TRUE(received.ends_with("xxx")) << "nothing follows the cut piece";
  }
  EXPECT_EQ(server_->counters().slow_readers.value(), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

using Errors = std::vector<std::error_code>;

/// Tries to read the body of its request by read() and by body_view().
Task<Result<>> read_and_write(BodySink& sink, Request* request, Errors* seen) {
  const auto piece = co_await request->read();
  seen->push_back(piece ? std::error_code() : piece.error());
  const auto whole = co_await request->body_view();
  seen->push_back(whole ? std::error_code() : whole.error());
  co_return co_await sink.write("streamed");
}

// The server has dropped the bytes that have arrived, so the function would read a body with a gap.
TEST_F(BodySinkTest, FunctionCannotReadTheRestOfABody) {
  Errors seen;
  routes_.post("/unread", [&seen](Request& request) {
    return stream(text_type, read_and_write, &request, &seen);
  });
  routes_.post("/begun", [&seen](Request& request) -> Task<Response> {
    const auto piece = co_await request.read();
    EXPECT_EQ(piece ? to_text(*piece) : "none", "01234");
    co_return stream(text_type, read_and_write, &request, &seen);
  });
  serve({.unread_body_max = 10});
  struct Row {
    std::string path;
    std::string headers;
    std::string body;
    std::string later;
  };
  const std::string sized = "Content-Length: 20\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const Row& row :
       {Row{"/unread", sized, "01234", ""},
        Row{"/unread", sized + "Expect: 100-continue\r\n", "", ""},
        Row{"/unread", chunked, "1\r\nx\r\n", "b\r\n0123456789a\r\n"},
        Row{"/begun", sized, "01234", ""}, Row{"/begun", chunked, "5\r\n01234\r\n", ""}}) {
    SCOPED_TRACE(row.path + " " + row.headers);
    seen.clear();
    MemoryPeer& peer = connect();
    talk(peer, "POST " + row.path + " HTTP/1.1\r\nHost: a\r\n" + row.headers + "\r\n" + row.body);
    talk(peer, row.later);
    EXPECT_EQ(seen, Errors(2, make_error_code(Errc::closed)));
    const auto answers = sim::parse_http_responses(peer.received());
    ASSERT_EQ(sim::statuses_of(answers), "200");
    EXPECT_EQ(answers[0].body, "streamed");
    EXPECT_EQ(answers[0].header("Connection"), "close");
    EXPECT_TRUE(peer.ended());
  }
}

Task<Result<>> write_with_trailer(BodySink& sink, std::string piece) {
  for (const std::string_view name : {"Content-Length", "Keep-Alive", "proxy-connection", "TE",
                                      "Set-Cookie", "authorization", "Content-Type", "Date"}) {
    EXPECT_EQ(error_of(sink.add_trailer(name, "1")), Errc::bad_input) << name;
  }
  EXPECT_EQ(error_of(sink.add_trailer("a b", "1")), Errc::bad_input);
  EXPECT_EQ(error_of(sink.add_trailer("a", "1\r\nb: 2")), Errc::bad_input);
  WEIR_CO_TRY(co_await sink.write(piece));
  WEIR_CO_TRY(sink.add_trailer("X-Sum", std::to_string(piece.size())));
  co_return {};
}

TEST_F(BodySinkTest, TrailersFollowTheLastChunk) {
  routes_.get("/", [] { return stream(text_type, write_with_trailer, std::string("body")); });
  routes_.get("/empty", [] { return stream(text_type, write_with_trailer, std::string()); });
  routes_.get("/known", [] {
    return stream(text_type, {.length = 4}, write_with_trailer, std::string("body"));
  });
  serve();
  const auto answer = [this](std::string_view target, int minor) {
    return talk(connect(), "GET " + std::string(target) + " HTTP/1." + std::to_string(minor) +
                               "\r\nHost: a\r\n\r\n");
  };
  EXPECT_TRUE(answer("/", 1).ends_with("\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 4\r\n\r\n"));
  EXPECT_TRUE(answer("/empty", 1).ends_with("\r\n\r\n0\r\nX-Sum: 0\r\n\r\n"));
  EXPECT_TRUE(answer("/known", 1).ends_with("\r\n\r\nbody"));
  EXPECT_TRUE(answer("/", 0).ends_with("\r\n\r\nbody"));
}

/// Returns the body of the request, and as a trailer what the trailers of the request say.
Task<Result<>> write_back(BodySink& sink, std::string body, std::string sum) {
  WEIR_CO_TRY(co_await sink.write(body));
  co_return sink.add_trailer("X-Sum", sum);
}
Task<Response> send_back(Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return Response(body.error());
  const auto sum = request.trailers().get("x-sum").value_or("none");
  co_return stream(text_type, write_back, *body, std::string(sum));
}

TEST_F(BodySinkTest, TrailersTravelBothWaysInEachVersion) {
  routes_.post("/", send_back);
  plain_http2_ = PlainHttp2::prior_knowledge;
  serve();
  for (const bool http2 : {false, true}) {
    SCOPED_TRACE(http2);
    const auto use = [http2]() -> Task<> {
      ClientOptions options;
      options.plain_http2 = http2;
      Client client(std::move(options));
      for (const std::string_view text : {"", "body"}) {
        ClientRequest post(Method::post, "http://127.0.0.1/");
        const auto write = [text](BodySink& sink) {
          return write_with_trailer(sink, std::string(text));
        };
        post.set_body("text/plain", Body(StreamFunction(write)));
        auto response = co_await client.send(std::move(post));
        EXPECT_TRUE(response);
        if (!response) co_return;
        EXPECT_EQ(response->version(), http2 ? Version::http_2 : Version::http_1_1);
        const auto body = co_await response->body();
        EXPECT_TRUE(body && *body == text);
        EXPECT_EQ(response->trailers().get("x-sum"), std::to_string(text.size()));
        EXPECT_EQ(response->trailers().count(), 1u);
      }
    };
    weir::run(*loop_, use());
  }
}

}  // namespace
}  // namespace weir::http::body_sink_test
