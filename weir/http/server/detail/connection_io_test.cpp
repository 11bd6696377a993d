// Tests how long a connection waits for its peer: each timeout, in virtual time.
#include "weir/http/server/detail/connection_io.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::connection_io_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post_of(std::string_view path, std::size_t length) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

Task<Response> size_of_body(Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(std::to_string(body->size()));
}
/// Sleeps between the pieces.
Task<Response> slow_reader(Request& request) {
  std::size_t size = 0;
  for (;;) {
    auto piece = co_await request.read();
    if (!piece) co_return Response(to_status(piece.error()));
    if (piece->empty()) co_return text(std::to_string(size));
    size += piece->size();
    std::ignore = co_await sleep(7s);
  }
}
Task<Response> too_slow(Request&) {
  std::ignore = co_await sleep(1h);
  co_return text("too late\n");
}
Task<Result<>> ticks(BodySink& sink, int count) {
  for (int i = 0; i < count; ++i) {
    if (auto slept = co_await sleep(30s); !slept) co_return slept;
    if (auto sent = co_await sink.write("tick\n"); !sent) co_return sent;
  }
  co_return {};
}

/// Collects the errors after the stream is broken.
Task<Result<>> write_twice_too_much(BodySink& sink, std::vector<std::error_code>* said) {
  const std::string piece(10'000, 'x');
  Result<> sent;
  while (said->size() < 2) {
    sent = co_await sink.write(piece);
    if (!sent) said->push_back(sent.error());
  }
  co_return sent;
}

constexpr int small_pieces = 2000;
/// Counts the pieces that it has written.
Task<Result<>> write_small_pieces(BodySink& sink, int* written) {
  for (; *written < small_pieces; ++*written) {
    if (auto sent = co_await sink.write("x"); !sent) co_return sent;
  }
  co_return {};
}

const std::string small_request = "GET /small HTTP/1.1\r\nHost: a\r\n\r\n";

class ConnectionIoTest : public HttpTest {
 protected:
  ConnectionIoTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.post("/size", size_of_body);
    routes_.post("/small", size_of_body, {.body_max = 10});
    routes_.post("/slow-reader", slow_reader);
    routes_.get("/deadline", too_slow, {.timeout = 3s});
    routes_.get("/large", [] { return text(std::string(1'000'000, 'x')); });
    routes_.get("/ticks", [] { return stream(text_type, ticks, 10); });
  }

  std::string answers(MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }
  /// Connects a client that reads nothing, and requests the small responses for which it has room.
  MemoryPeer& connect_slow_reader() {
    routes_.get("/small", [] { return text(std::string(10'000, 'x')); });
    serve();
    MemoryPeer& peer = connect();
    for (int count = 0; count < 6; ++count) {
      peer.send(small_request);
      settle();
    }
    return peer;
  }
  bool gone() { return server_->counters().connections_open.value() == 0; }
  std::uint64_t refused(ParseError error) {
    return server_->counters().parse_errors[static_cast<std::size_t>(error)].value();
  }
};

TEST_F(ConnectionIoTest, HeadTimesOutAfterTenSeconds) {
  serve();
  MemoryPeer& peer = connect();
  settle();
  pass(14s);  // still idle: no byte of a head has arrived
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(talk(peer, get.substr(static_cast<std::size_t>(second), 1)), "") << second;
    pass(999ms);
  }
  EXPECT_EQ(answers(peer), "");
  pass(10ms);
  EXPECT_EQ(answers(peer), "408");
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(refused(ParseError::head_timed_out), 1u);
  pass(1s);
  EXPECT_TRUE(gone());
  peer.close();
  expect_at_rest();
}

TEST_F(ConnectionIoTest, HeadBehindAnAnswerHasItsOwnTenSeconds) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get);
  pass(50s);
  talk(peer, std::string(get) + "GET / HT");
  pass(9999ms);
  EXPECT_EQ(answers(peer), "200 200");
  pass(1ms);
  EXPECT_EQ(answers(peer), "200 200 408");
}

TEST_F(ConnectionIoTest, IdleConnectionClosesQuietlyAfterAMinute) {
  serve();
  MemoryPeer& used = connect();
  MemoryPeer& idle = connect();
  talk(used, get);
  talk(idle, get);
  pass(59s);
  talk(used, get);
  pass(999ms);
  EXPECT_FALSE(idle.ended());
  pass(1ms);
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(answers(idle), "200");
  pass(58999ms);
  EXPECT_FALSE(used.ended());
  pass(1ms);
  EXPECT_TRUE(used.ended());
  EXPECT_EQ(answers(used), "200 200");
  pass(1s);
  EXPECT_TRUE(gone());
}

TEST_F(ConnectionIoTest, StalledBodyIsRejected) {
  serve();
  for (const char* const path : {"/size", "/ignored"}) {
    MemoryPeer& peer = connect();
    talk(peer, post_of(path, 1000) + "start");
    pass(4999ms);
    EXPECT_EQ(answers(peer), "");
    pass(30ms);  // the first bytes have earned a little time
    EXPECT_EQ(answers(peer), "408") << path;
    EXPECT_TRUE(peer.ended());
  }
  EXPECT_EQ(refused(ParseError::body_timed_out), 2u);
}

TEST_F(ConnectionIoTest, ABodyAtTheMinimumRateArrives) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/size", 24000));
  for (int second = 0; second < 100; ++second) {
    pass(1s);
    ASSERT_EQ(answers(peer), "") << second;
    talk(peer, std::string(240, 'x'));
  }
  EXPECT_EQ(answers(peer), "200");
}

TEST_F(ConnectionIoTest, TricklingBodyIsRejected) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/size", 24000));
  int seconds = 0;
  for (; seconds < 100 && answers(peer).empty(); ++seconds) {
    pass(1s);
    talk(peer, std::string(120, 'x'));
  }
  EXPECT_EQ(seconds,
            9);  // half the rate: the grace lasts twice as long, less the time of the late bytes
  EXPECT_EQ(answers(peer), "408");
}

TEST_F(ConnectionIoTest, BurstDoesNotAllowALongStall) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/size", 1'000'000) + std::string(60'000, 'x'));
  pass(19s);
  EXPECT_EQ(answers(peer), "");
  pass(1s);
  EXPECT_EQ(answers(peer), "408");
}

// The client sends everything immediately; the handler takes long.
TEST_F(ConnectionIoTest, HandlerTimeDoesNotCountAgainstTheClient) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/slow-reader", 40000));
  for (int piece = 0; piece < 4; ++piece) {
    talk(peer, std::string(10000, 'x'));
    pass(14s);
    ASSERT_FALSE(peer.ended()) << piece;
  }
  pass(60s);
  EXPECT_EQ(answers(peer), "200");
}

TEST_F(ConnectionIoTest, RouteMayLowerTheBodyLimit) {
  serve();
  EXPECT_EQ(statuses(post_of("/small", 10) + "0123456789"), "200");
  EXPECT_EQ(statuses(post_of("/small", 11)), "413");
  EXPECT_EQ(statuses("POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "8\r\n01234567\r\n8\r\n01234567\r\n0\r\n\r\n"),
            "413");
  EXPECT_EQ(refused(ParseError::body_too_large), 2u);
}

TEST_F(ConnectionIoTest, RouteMayHaveATimeout) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "GET /deadline HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(get));
  pass(2999ms);
  EXPECT_EQ(answers(peer), "");
  pass(1ms);
  EXPECT_EQ(answers(peer), "503 200");
  EXPECT_FALSE(peer.ended());
}

TEST_F(ConnectionIoTest, ClientThatNeverReadsIsClosed) {
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  EXPECT_GT(peer.unread(), 60'000u);
  pass(9999ms);
  EXPECT_FALSE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 0u);
  pass(1ms);
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 1u);
  EXPECT_NE(server_->counters().summary().find(", 1 slow readers"), std::string::npos);
  peer.close();
  settle();
  expect_at_rest();
}

TEST_F(ConnectionIoTest, ClientThatLeavesIsNotASlowReader) {
  serve();
  for (const bool reset : {false, true}) {
    MemoryPeer& peer = connect();
    peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    pass(9s);
    reset ? peer.reset() : peer.close();
    pass(9s);
    EXPECT_TRUE(gone());
  }
  EXPECT_EQ(server_->counters().slow_readers.value(), 0u);
}

TEST_F(ConnectionIoTest, StreamReceivesTheTimeoutOfASlowReader) {
  std::vector<std::error_code> said;
  routes_.get("/endless", [&said] { return stream(text_type, write_twice_too_much, &said); });
  serve();
  connect().send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(10s);
  EXPECT_TRUE(gone());
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0], Errc::timed_out);
  EXPECT_EQ(said[1], Errc::timed_out);
  EXPECT_EQ(server_->counters().slow_readers.value(), 1u);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0u) << "it is the client's";
}

TEST_F(ConnectionIoTest, ClientThatStopsReadingIsClosed) {
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  for (int read = 0; read < 5; ++read) {
    pass(9s);
    ASSERT_FALSE(gone()) << read;
    peer.read(60'000);
    settle();
  }
  pass(14'999ms);  // the budget was full when the last bytes were seen, 5 s after they were read
  EXPECT_FALSE(gone());
  pass(1ms);
  EXPECT_TRUE(gone());
}

TEST_F(ConnectionIoTest, ClientThatReadsAtTheMinimumRateIsKept) {
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  for (int second = 0; second < 300; ++second) {
    pass(1s);
    peer.read(240);
    settle();
    ASSERT_FALSE(gone()) << second;
  }
  while (!gone() && peer.received().size() < 1'000'000) settle();
  EXPECT_EQ(answers(peer), "200");
}

// The client is not to blame for bytes that do not exist yet.
TEST_F(ConnectionIoTest, StreamWithoutDataIsNotASlowReader) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "GET /ticks HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(301s);
  const auto all = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(all), "200");
  EXPECT_EQ(all[0].body.size(), 50u);
}

// All pieces fit in the kernel's buffer, so no write waits for the client.
TEST_F(ConnectionIoTest, StreamOfSmallPiecesLeavesEachTurnToOthers) {
  int written = 0;
  routes_.get("/pieces", [&written] { return stream(text_type, write_small_pieces, &written); });
  serve();
  MemoryPeer& peer = connect();
  settle();
  peer.send("GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n");
  int written_in_turn_max = 0;
  for (bool busy = true; busy;) {
    const int before = written;
    busy = turn();
    written_in_turn_max = std::max(written_in_turn_max, written - before);
  }
  EXPECT_EQ(written, small_pieces);
  EXPECT_LT(written_in_turn_max, small_pieces / 10);
  EXPECT_EQ(answers(peer), "200");
}

TEST_F(ConnectionIoTest, EmptyLinesAreNoHead) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "\r\n\r\n");
  pass(10s);
  EXPECT_EQ(peer.received(), "");
  EXPECT_TRUE(gone());
}

TEST_F(ConnectionIoTest, EachHeadOfAPipelineHasItsOwnTenSeconds) {
  serve();
  const std::string start(get.substr(0, 8));
  const std::string rest(get.substr(8));
  MemoryPeer& behind_heads = connect();
  talk(behind_heads, start);
  for (int count = 1; count <= 3; ++count) {
    pass(9999ms);
    talk(behind_heads, rest + start);
    EXPECT_EQ(sim::parse_http_responses(behind_heads.received()).size(),
              static_cast<std::size_t>(count));
  }
  pass(9999ms);
  EXPECT_EQ(answers(behind_heads), "200 200 200");
  pass(1ms);
  EXPECT_EQ(answers(behind_heads), "200 200 200 408");

  MemoryPeer& behind_body = connect();
  talk(behind_body, post_of("/size", 2) + "a");
  pass(4s);
  talk(behind_body, "b" + start);
  pass(9999ms);
  EXPECT_EQ(answers(behind_body), "200");
  pass(1ms);
  EXPECT_EQ(answers(behind_body), "200 408");

  // The server reads no further while a handler runs.
  MemoryPeer& behind_handler = connect();
  talk(behind_handler, "GET /deadline HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(1s);
  talk(behind_handler, start);
  pass(2s);
  EXPECT_EQ(answers(behind_handler), "503");
  pass(9999ms);
  EXPECT_EQ(answers(behind_handler), "503");
  pass(1ms);
  EXPECT_EQ(answers(behind_handler), "503 408");
  EXPECT_EQ(refused(ParseError::head_timed_out), 3U);
}

// More bytes of a head must not give it more time.
TEST_F(ConnectionIoTest, BytesOfAHeadDoNotExtendItsTime) {
  serve();
  for (const std::string_view before : {"", "\r\n", "\r\n\r\n"}) {
    MemoryPeer& peer = connect();
    talk(peer, std::string(get) + std::string(before) + "G");
    for (std::size_t second = 1; second < 10; ++second) {
      pass(1s);
      talk(peer, get.substr(second, 1));
    }
    EXPECT_EQ(answers(peer), "200");
    pass(1s);
    EXPECT_EQ(answers(peer), "200 408");
    EXPECT_TRUE(peer.ended());
  }
}

TEST_F(ConnectionIoTest, EachBodyHasItsOwnTime) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/size", 10) + "12345");
  pass(4900ms);
  talk(peer, "67890" + post_of("/size", 10) + "1");
  EXPECT_EQ(answers(peer), "200");
  pass(4900ms);
  EXPECT_EQ(answers(peer), "200");
  talk(peer, "234567890");
  EXPECT_EQ(answers(peer), "200 200");
}

TEST_F(ConnectionIoTest, LateAnswerOfAHandlerDoesNotTouchTheNextHandler) {
  routes_.get("/sleeps/{seconds}", [](int seconds) -> Task<Response> {
    const auto slept = co_await sleep(std::chrono::seconds(seconds));
    co_return slept ? text("slept") : text("cancelled");
  });
  routes_.get("/limited/{seconds}",
              [](int seconds) -> Task<Response> {
                std::ignore = co_await sleep(std::chrono::seconds(seconds));
                co_return text("limited");
              },
              {.timeout = 3s});
  serve();
  const auto of = [](std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  // The first handler ends in time; its timeout must not end the second one.
  MemoryPeer& in_time = connect();
  talk(in_time, of("/limited/1") + of("/sleeps/5"));
  pass(6s);
  auto all = sim::parse_http_responses(in_time.received());
  ASSERT_EQ(sim::statuses_of(all), "200 200");
  EXPECT_EQ(all[1].body, "slept");
  // The first handler times out; the second one is not late.
  MemoryPeer& late = connect();
  talk(late, of("/limited/9") + of("/sleeps/5") + of("/sleeps/0") + of("/limited/2"));
  pass(3s);
  EXPECT_EQ(answers(late), "503");
  pass(7s);
  all = sim::parse_http_responses(late.received());
  ASSERT_EQ(sim::statuses_of(all), "503 200 200 200");
  EXPECT_EQ(all[1].body, "slept");
  EXPECT_EQ(all[3].body, "limited");
}

TEST_F(ConnectionIoTest, SmallAnswersToAClientThatNeverReadsTimeOut) {
  MemoryPeer& peer = connect_slow_reader();
  peer.send(small_request);
  settle();
  EXPECT_EQ(peer.unread(), 64U * 1024) << "the seventh answer fits in part";
  pass(9999ms);
  EXPECT_FALSE(gone());
  pass(1ms);
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 1U);
}

TEST_F(ConnectionIoTest, SlowReaderEndsTheHandlerBehindItsAnswers) {
  std::vector<std::error_code> ended;
  routes_.get("/waits", [&](Request&) -> Task<Response> {
    const auto slept = co_await sleep(1h);
    ended.push_back(slept ? std::error_code() : slept.error());
    co_return text("done");
  });
  MemoryPeer& peer = connect_slow_reader();
  peer.send(small_request + "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  pass(9999ms);
  EXPECT_TRUE(ended.empty());
  pass(1ms);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0], Errc::cancelled);
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 1U);
}

// A read and a write of one connection wait at the same time, each with its own deadline.
TEST_F(ConnectionIoTest, BodyTimesOutWhileEarlierAnswersAreStillSent) {
  std::vector<std::error_code> seen;
  routes_.post("/notes", [&](Request& request) -> Task<Response> {
    const auto body = co_await request.body();
    seen.push_back(body ? std::error_code() : body.error());
    co_return text("done");
  });
  MemoryPeer& peer = connect_slow_reader();
  peer.send(small_request + post_of("/notes", 10));
  settle();
  pass(4999ms);
  EXPECT_TRUE(seen.empty());
  pass(1ms);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], ParseError::body_timed_out);
  pass(4999ms);
  EXPECT_FALSE(gone());
  pass(1ms);
  EXPECT_TRUE(gone()) << "the write has its own time";
}

TEST_F(ConnectionIoTest, InterimResponseWaitsForTheWriteInProgress) {
  MemoryPeer& peer = connect_slow_reader();
  peer.send(small_request +
            "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
            "Expect: 100-continue\r\n\r\n");
  settle();
  EXPECT_EQ(peer.unread(), 64U * 1024);
  peer.received();
  settle();
  EXPECT_EQ(answers(peer), "200 200 200 200 200 200 200 100");
  talk(peer, "abc" + std::string(get));
  EXPECT_EQ(answers(peer), "200 200 200 200 200 200 200 100 200 200");
  EXPECT_FALSE(peer.ended());
}

/// Writes a piece that a client must read, sleeps, and writes another one.
Task<Result<>> two_large_pieces(BodySink& sink, Duration pause) {
  const std::string piece(100'000, 'x');
  if (auto sent = co_await sink.write(piece); !sent) co_return sent;
  if (auto slept = co_await sleep(pause); !slept) co_return slept;
  co_return co_await sink.write(piece);
}

TEST_F(ConnectionIoTest, EachWriteHasItsOwnTime) {
  routes_.get("/two/{pause}", [](int pause) {
    return stream(text_type, two_large_pieces, Duration(std::chrono::seconds(pause)));
  });
  serve();
  for (const int pause : {0, 30}) {
    SCOPED_TRACE(pause);
    const std::uint64_t slow_before = server_->counters().slow_readers.value();
    MemoryPeer& peer = connect();
    peer.send("GET /two/" + std::to_string(pause) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    settle();
    pass(9s);
    while (peer.received().size() < 100'000) settle();
    settle();
    pass(std::chrono::seconds(pause));
    EXPECT_GT(peer.unread(), 60'000U) << "the second piece waits for its reader";
    pass(9999ms);
    EXPECT_FALSE(gone());
    EXPECT_EQ(server_->counters().slow_readers.value(), slow_before);
    pass(1ms);
    EXPECT_TRUE(gone());
    EXPECT_EQ(server_->counters().slow_readers.value(), slow_before + 1);
  }
}

// The kernel of the server holds the bytes; the client has not read them.
TEST_F(ConnectionIoTest, BytesThatTheClientHasNotAcknowledgedAreNoProgress) {
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  for (int second = 1; second <= 9; ++second) {
    pass(1s);
    ASSERT_FALSE(gone()) << second;
    peer.read(5000);
    platform_.unacked += 5000;
    settle();
  }
  pass(999ms);
  EXPECT_FALSE(gone());
  pass(1ms);
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 1U);
}

TEST_F(ConnectionIoTest, LateAcknowledgementsAreProgress) {
  platform_.unacked = 50'000;
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  for (int second = 1; second <= 40; ++second) {
    pass(1s);
    ASSERT_FALSE(gone()) << second;
    platform_.unacked -= 1000;  // the buffers of the kernel shrink
  }
  pass(15s);
  EXPECT_TRUE(gone());
}

TEST_F(ConnectionIoTest, PeerThatLeavesInAHeadGetsNoAnswer) {
  serve();
  for (const bool half_closed : {false, true}) {
    MemoryPeer& peer = connect();
    talk(peer, std::string(get) + "GET / HT");
    half_closed ? peer.finish() : peer.reset();
    settle();
    EXPECT_EQ(answers(peer), half_closed ? "200" : "200");
    EXPECT_TRUE(gone());
  }
  EXPECT_EQ(refused(ParseError::head_timed_out), 0U);
  EXPECT_EQ(server_->counters().responses.value(), 2U);
}

TEST_F(ConnectionIoTest, WaitForABodyHoldsNoBuffer) {
  serve();
  const auto buffers = [this] {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use(BlockUse::buffer);
  };
  const std::size_t before = buffers();
  for (const char* const path : {"/size", "/ignored", "/small"}) {
    MemoryPeer& peer = connect();
    talk(peer, std::string(get) + post_of(path, 10));
    EXPECT_EQ(answers(peer), "200");
    EXPECT_LE(buffers(), before + (path == std::string_view("/ignored") ? 1 : 0)) << path;
    talk(peer, "01234");
    EXPECT_LE(buffers(), before + 1) << path;
    talk(peer, "56789");
    EXPECT_EQ(answers(peer), "200 200");
    EXPECT_EQ(buffers(), before) << path;
  }
}

TEST_F(ConnectionIoTest, WaitingHandlerHoldsNoBuffer) {
  serve();
  const std::size_t before = loop_->blocks().blocks_in_use(BlockUse::buffer);
  for (const std::string& request : {std::string("GET /deadline HTTP/1.1\r\nHost: a\r\n\r\n"),
                                     std::string("GET /ticks HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    MemoryPeer& peer = connect();
    talk(peer, std::string(get) + request);
    loop_->blocks().collect();
    EXPECT_EQ(loop_->blocks().blocks_in_use(BlockUse::buffer), before) << request;
    peer.reset();
    settle();
  }
}

TEST_F(ConnectionIoTest, IdleConnectionStillReadsForAMomentAfterItsTimeout) {
  serve({.linger_bytes_max = 1000});
  const auto open = [this] { return server_->counters().connections_open.value(); };
  MemoryPeer& quiet = connect();
  talk(quiet, get);
  pass(60s);
  EXPECT_TRUE(quiet.ended());
  EXPECT_EQ(open(), 1U);
  talk(quiet, get);
  EXPECT_FALSE(quiet.was_reset()) << "its request was on the way";
  pass(999ms);
  EXPECT_EQ(open(), 1U);
  pass(1ms);
  EXPECT_EQ(open(), 0U);
  EXPECT_EQ(answers(quiet), "200");
}

TEST_F(ConnectionIoTest, ClosingConnectionReadsAtMostTheLimit) {
  serve({.linger_bytes_max = 1000});
  for (const std::size_t size : {999U, 1000U, 1001U}) {
    MemoryPeer& peer = connect();
    talk(peer, "bad\r\n\r\n");
    talk(peer, std::string(500, 'x'));
    talk(peer, std::string(size - 500, 'x'));
    EXPECT_EQ(server_->counters().connections_open.value(), size > 1000 ? 0U : 1U) << size;
    pass(1s);
    EXPECT_TRUE(gone());
  }
}

TEST_F(ConnectionIoTest, TimeoutOfARouteEndsTheWaitForABody) {
  routes_.post("/limited", size_of_body, {.timeout = 3s});
  serve();
  MemoryPeer& peer = connect();
  talk(peer, post_of("/limited", 10) + "12345");
  pass(2999ms);
  EXPECT_EQ(answers(peer), "");
  pass(1ms);
  const auto all = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(all), "503");
  EXPECT_EQ(all[0].header("Connection"), "close") << "the rest of the body may never arrive";
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(refused(ParseError::body_timed_out), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

TEST_F(ConnectionIoTest, SlowReaderOfAnInterimResponseIsNotASlowBody) {
  std::vector<std::error_code> seen;
  routes_.post("/notes", [&](Request& request) -> Task<Response> {
    const auto body = co_await request.body();
    seen.push_back(body ? std::error_code() : body.error());
    co_return text("done");
  });
  MemoryPeer& peer = connect_slow_reader();
  peer.send(small_request +
            "POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
            "Expect: 100-continue\r\n\r\n");
  settle();
  pass(9999ms);
  EXPECT_TRUE(seen.empty());
  pass(1ms);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], Errc::timed_out);
  EXPECT_TRUE(gone());
  EXPECT_EQ(server_->counters().slow_readers.value(), 1U);
  EXPECT_EQ(refused(ParseError::body_timed_out), 0U);
}

}  // namespace
}  // namespace weir::http::connection_io_test
