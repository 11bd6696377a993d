#include "weir/http/server/detail/request_body.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::request_body_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post_of(std::string_view path, std::size_t length, std::string_view more = {}) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n" +
         std::string(more) + "\r\n";
}
std::string chunked_of(std::string_view path, std::string_view more = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" +
         std::string(more) + "\r\n";
}

Task<Response> give_back(Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return Response(to_status(body.error()));
  std::string answer(*body);
  for (const HeaderField header : request.trailers()) {
    answer.append("|").append(header.name).append("=").append(header.value);
  }
  co_return text(answer);
}
Task<Response> copied(Request& request) {
  auto body = co_await request.body();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(*body);
}
Task<Response> twice(Request& request) {
  auto first = co_await request.body_view();
  auto second = co_await request.body();
  if (!first || !second) co_return Response(Status::bad_request);
  co_return text(std::string(*first) + "+" + *second);
}
/// Keeps the view while it reads on and waits.
Task<Response> holds_view(Request& request) {
  auto body = co_await request.body_view();
  auto rest = co_await request.read();
  std::ignore = co_await sleep(1s);
  if (!body || !rest) co_return Response(Status::bad_request);
  co_return text(std::string(*body) + "+" + std::to_string(rest->size()));
}
Task<Response> one_piece_only(Request& request) {
  auto piece = co_await request.read();
  co_return text(std::string(piece ? "a piece\n" : "nothing\n"));
}
Task<Response> ignore_body(Request&) {
  std::ignore = co_await sleep(1s);
  co_return text("ignore_body\n");
}
Task<Response> swallows(Request& request) {
  std::ignore = co_await request.body_view();
  co_return text("all is well\n");
}
Task<Response> patient(Request& request) {
  auto body = co_await timeout(1s, request.body());
  if (body) co_return text("early");
  body = co_await request.body();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(*body);
}
/// Reads by pieces what an earlier call has not collected in time.
Task<Response> impatient(Request& request) {
  auto body = co_await timeout(1s, request.body_view());
  if (body) co_return text("early");
  std::string pieces;
  for (;;) {
    auto piece = co_await request.read();
    if (!piece) co_return Response(to_status(piece.error()));
    if (piece->empty()) co_return text(std::move(pieces));
    pieces += to_text(*piece);
  }
}
Task<Response> streams_request(Request& request) {
  struct Later {
    static Task<Result<>> write(BodySink& sink, Request* of) {
      auto body = co_await of->body();
      const std::string_view seen = body ? "readable" : "closed";
      co_return co_await sink.write(seen);
    }
  };
  co_return stream(text_type, &Later::write, &request);
}
std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// Returns the first piece, the rest, and what later calls of read() return.
Task<Response> piece_and_rest(Request& request) {
  auto piece = co_await request.read();
  if (!piece) co_return Response(to_status(piece.error()));
  std::string answer = text_of(*piece) + "+";
  auto rest = co_await request.body_view();
  auto again = co_await request.read();
  if (!rest || !again) co_return Response(Status::bad_request);
  answer += std::string(*rest) + "+" + text_of(*again);
  auto end = co_await request.read();
  if (!end || !end->empty()) co_return Response(Status::bad_request);
  co_return text(std::move(answer));
}
/// Returns all pieces and trailers, with a '.' for each second without a piece.
Task<Response> pieces(Request& request) {
  std::string answer;
  for (;;) {
    auto piece = co_await timeout(1s, request.read());
    if (!piece && piece.error() == Errc::timed_out) {
      answer += '.';
      continue;
    }
    if (!piece) co_return Response(to_status(piece.error()));
    if (piece->empty()) break;
    answer += text_of(*piece);
  }
  auto later = co_await request.read();
  if (!later || !later->empty()) co_return Response(Status::bad_request);
  co_return text(answer + "|" + std::string(request.trailers().lines()));
}
std::string name_of_error(std::error_code error) {
  if (error.category() != parse_error_category()) return error.message();
  return std::string(name_of(static_cast<ParseError>(error.value())));
}
/// Returns the errors of three calls.
Task<Response> three_errors(Request& request) {
  auto view = co_await request.body_view();
  auto piece = co_await request.read();
  auto copy = co_await request.body();
  if (view || piece || copy) co_return text("no error");
  Response response = text(name_of_error(view.error()) + " " + name_of_error(piece.error()) + " " +
                           name_of_error(copy.error()));
  response.set_status(Status::unprocessable_content);
  co_return response;
}

struct Pair {
  int left;
  int right;
};
int sum(const Pair& pair) {
  return pair.left + pair.right;
}

class RequestBodyTest : public HttpTest {
 protected:
  RequestBodyTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.post("/back", give_back);
    routes_.post("/copied", copied);
    routes_.post("/twice", twice);
    routes_.post("/holds", holds_view);
    routes_.post("/piece", one_piece_only);
    routes_.post("/ignore_body", ignore_body);
    routes_.post("/swallows", swallows);
    routes_.post("/patient", patient);
    routes_.post("/impatient", impatient);
    routes_.post("/streams", streams_request);
    routes_.post("/piece-and-rest", piece_and_rest);
    routes_.post("/pieces", pieces);
    routes_.post("/ten-pieces", pieces, {.body_max = 10});
    routes_.post("/errors", three_errors, {.body_max = 10});
    routes_.post("/sum", [](Pair pair) { return text(std::to_string(sum(pair)) + "\n"); });
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.post("/echoes-path/{rest...}",
                 [](Request& request, std::string_view) { return text(request.path_text()); });
  }

  /// Sends the request as a whole, byte by byte, and cut in two at every point; the answer is
  /// always the same.
  std::string answers_however_cut(const std::string& request) {
    const std::string whole = talk(connect(), request);
    MemoryPeer& bytewise = connect();
    for (const char each : request) talk(bytewise, {&each, 1});
    EXPECT_EQ(bytewise.received(), whole) << "byte by byte: " << request;
    for (std::size_t cut = 1; cut < request.size(); ++cut) {
      MemoryPeer& peer = connect();
      talk(peer, request.substr(0, cut));
      talk(peer, request.substr(cut));
      EXPECT_EQ(peer.received(), whole) << "cut at " << cut << ": " << request;
      peer.close();
    }
    return whole;
  }
  std::string body_of(const std::string& answer) {
    const auto answers = sim::parse_http_responses(answer);
    return answers.empty() ? "(none)" : answers[0].body;
  }
};

TEST_F(RequestBodyTest, BodiesWithALength) {
  serve();
  for (const char* const path : {"/back", "/copied"}) {
    const std::string answer =
        answers_however_cut(post_of(path, 10) + "0123456789" + std::string(get));
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "200 200") << path;
    EXPECT_EQ(body_of(answer), "0123456789") << path;
  }
}

TEST_F(RequestBodyTest, ChunkedBodiesWithTrailers) {
  serve();
  const std::string request = chunked_of("/back") +
                              "5;a=\"b\"\r\n01234\r\n5\r\n56789\r\n0\r\nX-Sum: 7\r\nY: z\r\n\r\n" +
                              std::string(get);
  const std::string answer = answers_however_cut(request);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "200 200");
  EXPECT_EQ(body_of(answer), "0123456789|X-Sum=7|Y=z");
}

TEST_F(RequestBodyTest, TrailersDoNotLeakIntoTheNextRequest) {
  serve();
  const std::string text = talk(
      connect(), chunked_of("/back") + "1\r\na\r\n0\r\nSecret: 1\r\n\r\n" + post_of("/back", 1) +
                     "b" + post_of("/back", 0) + chunked_of("/back") + "1\r\nc\r\n0\r\n\r\n");
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200 200");
  EXPECT_EQ(answers[0].body, "a|Secret=1");
  EXPECT_EQ(answers[1].body, "b");
  EXPECT_EQ(answers[2].body, "");
  EXPECT_EQ(answers[3].body, "c");
}

// Requests of one connection may come from different users, through a proxy.
TEST_F(RequestBodyTest, BodiesDoNotLeakIntoTheNextRequest) {
  routes_.get("/back", give_back);
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/back", 6) + "sec");
  const std::string text =
      talk(peer, "ret" + post_of("/back", 0) + "GET /back HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200");
  EXPECT_EQ(answers[0].body, "secret");
  EXPECT_EQ(answers[1].body, "");
  EXPECT_EQ(answers[2].body, "");
}

TEST_F(RequestBodyTest, BodyMayBeRequestedTwice) {
  serve();
  EXPECT_EQ(body_of(answers_however_cut(post_of("/twice", 3) + "abc")), "abc+abc");
  EXPECT_EQ(body_of(answers_however_cut(chunked_of("/twice") + "3\r\nabc\r\n0\r\n\r\n")),
            "abc+abc");
  EXPECT_EQ(body_of(talk(connect(), post_of("/twice", 0))), "+");
}

TEST_F(RequestBodyTest, TheViewLivesAsLongAsTheRequest) {
  serve();
  for (const std::string& request :
       {post_of("/holds", 3) + "abc", chunked_of("/holds") + "3\r\nabc\r\n0\r\n\r\n"}) {
    MemoryPeer& peer = connect();
    talk(peer, request + std::string(get));
    pass(1s);
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200");
    EXPECT_EQ(body_of(peer.received()), "abc+3");
    MemoryPeer& alone = connect();
    talk(alone, request);
    pass(1s);
    EXPECT_EQ(body_of(alone.received()), "abc+3");
  }
}

TEST_F(RequestBodyTest, MalformedBodiesAreRejectedForEverySegmentation) {
  serve();
  const char* const malformed[] = {
      "5\r\n01234X",
      "g\r\n",
      "5\n01234\r\n0\r\n\r\n",
      "5\r\n01234\r\n0\r\nContent-Length: 3\r\n\r\n",
      "-1\r\n",
      "5\r\n01234\r\n0\r\nX : y\r\n\r\n",
      "5;a=\"\r\n",
      "ffffffffffffffffff\r\n",
  };
  for (const char* const body : malformed) {
    for (const char* const path : {"/back", "/copied", "/swallows", "/ignored", "/nowhere"}) {
      const std::string answer = answers_however_cut(chunked_of(path) + body);
      EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(answer)), "400") << path << " " << body;
    }
  }
}

TEST_F(RequestBodyTest, ACutUploadIsNeverWhole) {
  serve();
  for (const std::string& head : {post_of("/back", 10), chunked_of("/back") + "a\r\n"}) {
    MemoryPeer& finished = connect();
    talk(finished, head + "012345678");
    finished.finish();
    settle();
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(finished.received())), "400");
    EXPECT_TRUE(finished.ended());

    MemoryPeer& gone = connect();
    talk(gone, head + "012345678");
    gone.reset();
    settle();
  }
  for (const std::string& head : {post_of("/ignored", 10), chunked_of("/ignored") + "a\r\n"}) {
    MemoryPeer& finished = connect();
    talk(finished, head + "012345678");
    finished.finish();
    settle();
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(finished.received())), "400");
    EXPECT_TRUE(finished.ended());
  }
}

TEST_F(RequestBodyTest, SendsNo100ForABodyThatHasArrived) {
  serve();
  MemoryPeer& peer = connect();
  const std::string answer = talk(
      peer,
      "POST /back HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
}

TEST_F(RequestBodyTest, UnreadBodyIsDroppedUpTo64KiB) {
  serve();
  const std::string fits(64 * 1024, 'x');
  MemoryPeer& kept = connect();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(
                talk(kept, post_of("/ignored", fits.size()) + fits + std::string(get)))),
            "200 200");
  pass(0s);
  const std::string more(64 * 1024 + 1, 'x');
  MemoryPeer& closed = connect();
  const auto answers = sim::parse_http_responses(
      talk(closed, post_of("/ignored", more.size()) + more.substr(0, 30'000)));
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].header("Connection"), "close");
  EXPECT_TRUE(closed.ended());

  std::string chunks = chunked_of("/ignored");
  for (int i = 0; i < 3; ++i) chunks += "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  MemoryPeer& chunked = connect();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(chunked, chunks))), "200");
  EXPECT_TRUE(chunked.ended());
}

TEST_F(RequestBodyTest, AnswersBeforeASlowBodyDoNotWaitForIt) {
  serve();
  for (const char* const path : {"/ignored", "/back", "/ignore_body"}) {
    MemoryPeer& peer = connect();
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(
                  talk(peer, std::string(get) + post_of(path, 5) + "12"))),
              "200")
        << path;
    pass(2s);
    talk(peer, "345");
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200") << path;
  }
}

// The head is read in place as long as no handler waits. The wait for a body must not move it
// away.
TEST_F(RequestBodyTest, AHeadOutlivesTheWaitForTheBodyBehindIt) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/echoes-path/some%20where", 5));
  const std::string answer = talk(peer, "12345");
  EXPECT_EQ(body_of(answer), "/echoes-path/some%20where");
}

TEST_F(RequestBodyTest, PartlyReadBodyClosesUnlessTheRestHasArrived) {
  serve();
  MemoryPeer& there = connect();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(
                there, chunked_of("/piece") + "1\r\na\r\n1\r\nb\r\n0\r\n\r\n" + std::string(get)))),
            "200 200");
  MemoryPeer& not_there = connect();
  const auto answers = sim::parse_http_responses(talk(not_there, post_of("/piece", 100) + "12345"));
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].header("Connection"), "close");
  EXPECT_TRUE(not_there.ended());
}

TEST_F(RequestBodyTest, ExpectIsAnsweredBeforeTheBodyIsRead) {
  serve();
  MemoryPeer& peer = connect();
  EXPECT_EQ(talk(peer, post_of("/back", 5, "Expect: 100-continue\r\n")),
            "HTTP/1.1 100 Continue\r\n\r\n");
  talk(peer, "12");
  EXPECT_EQ(talk(peer, "345").substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_FALSE(peer.ended());

  EXPECT_EQ(talk(connect(),
                 "POST /back HTTP/1.0\r\nContent-Length: 5\r\n"
                 "Expect: 100-continue\r\n\r\n"),
            "");
  EXPECT_EQ(statuses(post_of("/back", 5, "Expect: something\r\n")), "417");
  EXPECT_EQ(statuses(post_of("/back", 0, "Expect: 100-continue\r\n")), "200");
  // The 100 follows an earlier answer that was not sent yet.
  EXPECT_EQ(statuses(std::string(get) + post_of("/back", 5, "Expect: 100-continue\r\n")),
            "200 100");
}

TEST_F(RequestBodyTest, AFinalAnswerInsteadOf100Closes) {
  serve();
  for (const char* const path : {"/ignored", "/ignore_body", "/nowhere"}) {
    MemoryPeer& peer = connect();
    talk(peer, post_of(path, 5, "Expect: 100-continue\r\n"));
    pass(1s);
    const auto answers = sim::parse_http_responses(peer.received());
    ASSERT_EQ(answers.size(), 1u) << path;
    EXPECT_GE(answers[0].status, 200) << path;
    EXPECT_EQ(answers[0].header("Connection"), "close") << path;
    EXPECT_TRUE(peer.ended()) << path;
  }
  EXPECT_EQ(statuses(post_of("/back", 2'000'000, "Expect: 100-continue\r\n")), "413");
}

TEST_F(RequestBodyTest, ACancelledWaitLosesNothing) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/patient", 6) + "abc");
  pass(2s);
  EXPECT_EQ(body_of(talk(peer, "def")), "abcdef");
}

TEST_F(RequestBodyTest, PiecesBeginWithWhatACancelledCallHasCollected) {
  serve();
  for (const bool chunked : {false, true}) {
    MemoryPeer& peer = connect();
    talk(peer,
         chunked ? chunked_of("/impatient") + "3\r\nabc\r\n" : post_of("/impatient", 6) + "abc");
    pass(2s);
    EXPECT_EQ(body_of(talk(peer, chunked ? "3\r\ndef\r\n0\r\n\r\n" : "def")), "abcdef");
  }
}

TEST_F(RequestBodyTest, ADroppedBodyDoesNotLookEmpty) {
  serve();
  EXPECT_EQ(body_of(talk(connect(), post_of("/streams", 3) + "abc")), "closed");
}

TEST_F(RequestBodyTest, SlowHandlerHoldsUpAStreamedUpload) {
  std::size_t pieces = 0;
  routes_.post("/upload",
               [&](Request& request) -> Task<Response> {
                 std::size_t size = 0;
                 for (;;) {
                   auto piece = co_await request.read();
                   if (!piece) co_return Response(to_status(piece.error()));
                   if (piece->empty()) co_return text(std::to_string(size));
                   size += piece->size();
                   ++pieces;
                   std::ignore = co_await sleep(10ms);
                 }
               },
               {.body_max = 100'000'000});
  serve();
  constexpr std::size_t size = 20'000'000;
  MemoryPeer& peer = connect();
  peer.send(post_of("/upload", size));
  settle();
  const std::string block(100'000, 'x');
  const std::size_t before = blocks();
  std::size_t sent = 0;
  std::size_t blocks_most = 0;
  while (sent < size) {
    sent += peer.send(std::string_view(block).substr(0, std::min(block.size(), size - sent)));
    ASSERT_LE(sent, pieces * 16 * 1024 + 100'000) << "more bytes were taken than read";
    pass(5ms);
    blocks_most = std::max(blocks_most, blocks());
  }
  pass(10s);
  EXPECT_EQ(body_of(peer.received()), std::to_string(size));
  EXPECT_LE(blocks_most, before + 4);
}

TEST_F(RequestBodyTest, FunctionOfABodyThatHasArrivedIsCalledImmediately) {
  serve();
  const std::string_view json = R"({"left":2,"right":3})";
  const std::string sized = post_of("/sum", json.size()) + std::string(json);
  const std::string expected = answers_however_cut(sized);
  EXPECT_NE(expected.find("\r\n\r\n5\n"), std::string::npos) << expected;
  // Several requests are pipelined in front of another one, with and without a length.
  const std::string chunked = chunked_of("/sum") + "14\r\n" + std::string(json) + "\r\n0\r\n\r\n";
  const std::string all = answers_however_cut(sized + chunked + sized + std::string(get));
  EXPECT_EQ(all.substr(0, 3 * expected.size()), expected + expected + expected);
  EXPECT_TRUE(all.ends_with("hello\n"));
  const std::string invited =
      talk(connect(), post_of("/sum", json.size(), "Expect: 100-continue\r\n") + std::string(json));
  EXPECT_EQ(invited, expected) << "no 100 for a body that has arrived";
  EXPECT_TRUE(answers_however_cut(post_of("/sum", 0)).starts_with("HTTP/1.1 400"));
}

TEST_F(RequestBodyTest, ChunkedBodyMayHaveExactlyTheLimitOfEachRequest) {
  routes_.post("/ten", give_back, {.body_max = 10});
  serve();
  const std::string ten = chunked_of("/ten") + "8\r\n01234567\r\n2\r\n89\r\n0\r\n\r\n";
  EXPECT_EQ(statuses(ten + ten + ten), "200 200 200") << "each body is counted on its own";
  const std::string eleven = chunked_of("/ten") + "8\r\n01234567\r\n3\r\n89a\r\n0\r\n\r\n";
  EXPECT_EQ(statuses(ten + eleven), "200 413");
  EXPECT_EQ(statuses(chunked_of("/ten") + "b\r\n0123456789a\r\n0\r\n\r\n"), "413");
}

TEST_F(RequestBodyTest, DefaultBodyLimitIsExact) {
  serve({.body_max = 20});
  for (const char* const path : {"/back", "/ignored", "/nowhere"}) {
    const std::string fits = statuses(post_of(path, 20) + std::string(20, 'x'));
    EXPECT_EQ(fits, path == std::string_view("/nowhere") ? "404" : "200");
    EXPECT_EQ(statuses(post_of(path, 21) + std::string(21, 'x')), "413");
  }
  const auto& parse_errors = server_->counters().parse_errors;
  EXPECT_EQ(parse_errors[static_cast<std::size_t>(ParseError::body_too_large)].value(), 3U);
}

// The state of one request's body must not decide about the next one.
TEST_F(RequestBodyTest, RequestsOfOneConnectionDoNotAffectEachOther) {
  routes_.get("/back", give_back);
  routes_.get("/piece", one_piece_only);
  serve();
  const std::string get_back = "GET /back HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string get_piece = "GET /piece HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string requests[] = {
      post_of("/back", 3) + "abc",
      post_of("/ignored", 3) + "abc",
      chunked_of("/ignored") + "1\r\na\r\n0\r\n\r\n",
      chunked_of("/back") + "1\r\na\r\n0\r\n\r\n",
      post_of("/piece", 3) + "abc",
      post_of("/sum", 20) + R"({"left":2,"right":3})",
      post_of("/back", 0),
      get_back,
      get_piece,
      std::string(get),
  };
  for (const std::string& first : requests) {
    const std::string answer_of_first = talk(connect(), first);
    for (const std::string& second : requests) {
      const std::string answer_of_second = talk(connect(), second);
      EXPECT_EQ(talk(connect(), first + second), answer_of_first + answer_of_second)
          << first << "\n-- then --\n"
          << second;
      // The body of the second request arrives later than its head.
      const std::size_t cut = second.find("\r\n\r\n") + 4;
      MemoryPeer& peer = connect();
      talk(peer, first + second.substr(0, cut));
      talk(peer, second.substr(cut));
      EXPECT_EQ(peer.received(), answer_of_first + answer_of_second)
          << first << "\n-- then, in two pieces --\n"
          << second;
      peer.close();
    }
  }
}

TEST_F(RequestBodyTest, PartOfABodyShowsThatTheClientDoesNotWaitFor100) {
  serve();
  for (const char* const path : {"/back", "/copied", "/twice"}) {
    MemoryPeer& peer = connect();
    EXPECT_EQ(talk(peer, post_of(path, 5, "Expect: 100-continue\r\n") + "ab"), "") << path;
    talk(peer, "cde" + std::string(get));
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200") << path;
  }
}

TEST_F(RequestBodyTest, UnreadBodyThatArrivesLateIsDroppedUpToTheLimit) {
  serve({.unread_body_max = 100});
  struct Row {
    std::size_t size;
    bool stays_open;
  };
  for (const Row row : {Row{99, true}, Row{100, true}, Row{101, false}}) {
    const std::string body(row.size, 'x');
    MemoryPeer& chunked = connect();
    talk(chunked, chunked_of("/ignored"));
    std::array<char, 8> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", row.size);
    talk(chunked, size.data() + body + "\r\n0\r\n\r\n" + std::string(get));
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(chunked.received())),
              row.stays_open ? "200 200" : "200")
        << row.size;
    EXPECT_EQ(chunked.ended(), !row.stays_open) << row.size;

    MemoryPeer& sized = connect();
    EXPECT_EQ(talk(sized, post_of("/ignored", row.size)).empty(), row.stays_open) << row.size;
    talk(sized, body + std::string(get));
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(sized.received())),
              row.stays_open ? "200 200" : "200")
        << row.size;
    EXPECT_EQ(sized.ended(), !row.stays_open) << row.size;
  }
}

TEST_F(RequestBodyTest, MalformedBodyIsCountedOnceByItsReason) {
  serve();
  std::uint64_t expected = 0;
  const auto& counter =
      server_->counters().parse_errors[static_cast<std::size_t>(ParseError::bad_chunk_size)];
  for (const char* const path : {"/back", "/copied", "/swallows", "/ignored", "/piece"}) {
    for (const bool late : {false, true}) {
      MemoryPeer& peer = connect();
      talk(peer, chunked_of(path) + (late ? "" : "g\r\n"));
      if (late) talk(peer, "g\r\n");
      EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "400") << path;
      EXPECT_TRUE(peer.ended()) << path;
      EXPECT_EQ(counter.value(), ++expected) << path << " " << late;
    }
  }
}

TEST_F(RequestBodyTest, HandlerMayAnswerAMalformedBodyWithItsOwnError) {
  routes_.post("/explains/{status}", [](Request& request, int status) -> Task<Response> {
    const auto body = co_await request.body();
    Response response = text(std::string(body ? "whole" : "explained"));
    response.set_status(Status{static_cast<std::uint16_t>(status)});
    co_return response;
  });
  serve();
  struct Row {
    std::string status;
    std::string expected;
    std::string body;
  };
  const Row rows[] = {{"200", "400", R"({"title":"Bad Request","status":400})"},
                      {"399", "400", R"({"title":"Bad Request","status":400})"},
                      {"400", "400", "explained"},
                      {"422", "422", "explained"},
                      {"500", "500", "explained"}};
  for (const Row& row : rows) {
    const std::string answer = talk(connect(), chunked_of("/explains/" + row.status) + "g\r\n");
    const auto answers = sim::parse_http_responses(answer);
    ASSERT_EQ(sim::statuses_of(answers), row.expected) << row.status;
    EXPECT_EQ(answers[0].body, row.body) << row.status;
    EXPECT_EQ(answers[0].header("Connection"), "close") << row.status;
  }
}

TEST_F(RequestBodyTest, StreamingFunctionFindsTheBodyClosed) {
  std::vector<std::error_code> seen;
  routes_.post("/streams-late", [&](Request& request) {
    const auto write = [](BodySink& sink, Request* of,
                          std::vector<std::error_code>* errors) -> Task<Result<>> {
      const auto body = co_await of->body();
      errors->push_back(body ? std::error_code() : body.error());
      const auto piece = co_await of->read();
      errors->push_back(piece ? std::error_code() : piece.error());
      co_return co_await sink.write("written");
    };
    return stream(text_type, write, &request, &seen);
  });
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/streams-late", 3) + "abc");
  talk(peer, post_of("/streams-late", 3));
  talk(peer, "abc");
  talk(peer, chunked_of("/streams-late"));
  talk(peer, "1\r\na\r\n0\r\n\r\n");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200 200");
  ASSERT_EQ(seen.size(), 6U);
  for (const std::error_code& each : seen) EXPECT_EQ(each, Errc::closed);
}

TEST_F(RequestBodyTest, BodyCanBeReadWhileAClosingClientStillSendsIt) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/ignored", 5, "Connection: close\r\n") + "ab");
  EXPECT_EQ(peer.received(), "") << "the rest of the body may be malformed or missing";
  talk(peer, "cde");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200");
  EXPECT_TRUE(peer.ended());
}

TEST_F(RequestBodyTest, RestOfABodyFollowsThePiecesThatWereRead) {
  serve();
  struct Row {
    std::vector<std::string> arrivals;
    std::string expected;
  };
  const std::string sized = post_of("/piece-and-rest", 6);
  const std::string chunked = chunked_of("/piece-and-rest");
  const Row rows[] = {
      {{sized + "abcdef"}, "abcdef++"},
      {{sized + "ab", "cdef"}, "ab+cdef+cdef"},
      {{sized + "ab", "c", "def"}, "ab+cdef+cdef"},
      {{chunked + "6\r\nabcdef\r\n0\r\n\r\n"}, "abcdef++"},
      {{chunked + "2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n"}, "ab+cdef+cdef"},
      {{chunked + "2\r\nab\r\n1", "\r\nc\r\n3\r\ndef\r\n0\r", "\n\r\n"}, "ab+cdef+cdef"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.arrivals.front());
    MemoryPeer& peer = connect();
    for (const std::string& each : row.arrivals) talk(peer, each);
    talk(peer, get);
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200");
    EXPECT_EQ(body_of(peer.received()), row.expected);
  }
}

TEST_F(RequestBodyTest, ACancelledReadLosesNoPiece) {
  serve();
  struct Row {
    std::string head;
    std::string first;
    std::string second;
    std::string expected;
  };
  const Row rows[] = {{post_of("/pieces", 6), "ab", "cdef", ".ab.cdef|"},
                      {chunked_of("/pieces"), "2\r\nab\r\n4\r", "\ncdef\r\n0\r\n\r\n", ".ab.cdef|"},
                      {chunked_of("/pieces"), "2\r\nab\r\n", "4\r\ncdef\r\n0\r\nX: y\r\nZ:\r\n\r\n",
                       ".ab.cdef|X: y\r\nZ: \r\n"}};
  for (const Row& row : rows) {
    MemoryPeer& peer = connect();
    talk(peer, row.head);
    pass(1s);
    talk(peer, row.first);
    pass(1s);
    talk(peer, row.second + std::string(get));
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200");
    EXPECT_EQ(body_of(peer.received()), row.expected);
  }
}

TEST_F(RequestBodyTest, LimitHoldsForPiecesToo) {
  serve();
  const std::string ten = "8\r\n01234567\r\n2\r\n89\r\n0\r\n\r\n";
  const std::string eleven = "8\r\n01234567\r\n3\r\n89a\r\n0\r\n\r\n";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(statuses(chunked_of("/ten-pieces") + ten + chunked_of("/ten-pieces") + eleven),
              "200 413");
    EXPECT_EQ(statuses(post_of("/ten-pieces", 10) + "0123456789" + post_of("/ten-pieces", 11)),
              "200 413");
  }
}

TEST_F(RequestBodyTest, EveryCallAfterAnErrorReturnsTheSameError) {
  serve();
  struct Row {
    std::string request;
    std::string error;
  };
  const std::string too_large = "b\r\n0123456789a\r\n0\r\n\r\n";
  const std::string chunked = chunked_of("/errors");
  for (const Row& row :
       {Row{chunked + "5\r\nhello\r\ng\r\n0\r\n\r\n", "bad_chunk_size"},
        Row{chunked + "5\r\nhello\r\n0\r\nHost: a\r\n\r\n", "forbidden_trailer"},
        Row{chunked + "5\r\nhello!\r\n0\r\n\r\n", "bad_chunk_end"},
        Row{chunked + too_large, "body_too_large"},
        Row{chunked + "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "body_too_large"}}) {
    const auto answers = sim::parse_http_responses(talk(connect(), row.request));
    ASSERT_EQ(sim::statuses_of(answers), "422") << row.request;
    EXPECT_EQ(answers[0].body, row.error + " " + row.error + " " + row.error) << row.request;
  }
  const std::string ended = make_error_code(Errc::end_of_stream).message();
  for (const std::string& request : {post_of("/errors", 9) + "hello", chunked + "9\r\nhello"}) {
    MemoryPeer& slow = connect();
    talk(slow, request);
    pass(6s);
    EXPECT_EQ(body_of(slow.received()), "body_timed_out body_timed_out body_timed_out");
    MemoryPeer& cut = connect();
    talk(cut, request);
    cut.finish();
    settle();
    EXPECT_EQ(body_of(cut.received()), ended + " " + ended + " " + ended);
  }
}

TEST_F(RequestBodyTest, A100IsSentOnce) {
  serve();
  MemoryPeer& chunked = connect();
  talk(chunked, chunked_of("/back", "Expect: 100-continue\r\n"));
  for (const char each : std::string_view("6;a=b\r\nabcdef\r\n0\r\nX: y\r\n\r\n")) {
    talk(chunked, {&each, 1});
  }
  auto answers = sim::parse_http_responses(chunked.received());
  ASSERT_EQ(sim::statuses_of(answers), "100 200");
  EXPECT_EQ(answers[1].body, "abcdef|X=y");

  MemoryPeer& patient = connect();
  talk(patient, post_of("/patient", 6, "Expect: 100-continue\r\n"));
  pass(2s);
  talk(patient, "abc");
  talk(patient, "def" + std::string(get));
  answers = sim::parse_http_responses(patient.received());
  ASSERT_EQ(sim::statuses_of(answers), "100 200 200");
  EXPECT_EQ(answers[1].body, "abcdef");
}

// Half an interim response would spoil the answer behind it.
TEST_F(RequestBodyTest, ACancelledWaitDoesNotCutTheInterimResponse) {
  routes_.get("/long", [] { return text(std::string(10'000, 'x')); });
  serve();
  const std::string get_long = "GET /long HTTP/1.1\r\nHost: a\r\n\r\n";
  MemoryPeer& peer = connect();
  for (int count = 0; count < 6; ++count) {
    peer.send(get_long);
    settle();
  }
  peer.send(get_long + post_of("/patient", 6, "Expect: 100-continue\r\n"));
  settle();
  EXPECT_EQ(peer.unread(), 64U * 1024) << "the answers fill the kernel's buffer";
  pass(2s);
  peer.received();
  settle();
  talk(peer, "abc");
  talk(peer, "def" + std::string(get));
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200 200 200 200 200 100 200 200");
  EXPECT_EQ(answers[8].body, "abcdef");
  EXPECT_FALSE(peer.ended());
}

}  // namespace
}  // namespace weir::http::request_body_test
